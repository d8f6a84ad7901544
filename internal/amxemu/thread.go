//go:build linux && amd64

package amxemu

import (
	"errors"
	"unsafe"

	"github.com/octavo-fp8/octavo/internal/asmtable"
	"golang.org/x/sys/unix"
)

// thread is a thread of the traced process that has stopped.
type thread struct {
	id    int
	regs  unix.PtraceRegs
	tiles *tiles
}

// The faults of an instruction. The first is the one that the processor itself
// has reported.
var errUndefined = errors.New("#UD")

type segmentFault struct {
	code    int32
	address uint64
}

func (*segmentFault) Error() string { return "segmentation fault" }

const (
	codeMap    = 1    // SEGV_MAPERR
	codeKernel = 0x80 // SI_KERNEL: what is no page fault
)

// general returns the registers by the numbers of package asmtable.
func (t *thread) general(number int) uint64 {
	r := &t.regs
	return [...]uint64{
		r.Rax, r.Rcx, r.Rdx, r.Rbx, r.Rsp, r.Rbp, r.Rsi, r.Rdi,
		r.R8, r.R9, r.R10, r.R11, r.R12, r.R13, r.R14, r.R15,
	}[number]
}

const noIndex = 4

// address returns where a memory operand lies without its index, and the index.
func (t *thread) address(m asmtable.Memory) (base, index uint64) {
	if m.Index != noIndex {
		index = t.general(m.Index) * uint64(m.Scale)
	}
	return t.general(m.Base) + uint64(int64(m.Disp)), index
}

// next returns the instruction that the thread has come to, if it is one of AMX.
func (t *thread) next() (in asmtable.AMX, length int, ok bool) {
	var code [16]byte // the last of them may not be there
	n, _ := unix.ProcessVMReadv(t.id, local(code[:]), remote(t.regs.Rip, 0, 1, len(code)), 0)
	in, length, err := asmtable.DecodeAMX(code[:max(n, 0)])
	return in, length, err == nil
}

// execute does what an instruction does. Where it returns an error it has changed
// no tile.
func (t *thread) execute(in asmtable.AMX) error {
	base, index := t.address(in.Memory)
	if in.Name != "ldtilecfg" && in.Name != "tilerelease" && !t.tiles.configured(in.Reg) {
		return errUndefined
	}
	s := t.tiles.shapes[in.Reg]
	switch in.Name {
	case "ldtilecfg":
		var operand [64]byte
		if err := t.transfer(unix.ProcessVMReadv, operand[:], base+index, 0, 1); err != nil {
			return err
		}
		if !t.tiles.configure(&operand) {
			return &segmentFault{code: codeKernel}
		}
	case "tilerelease":
		*t.tiles = tiles{}
	case "tilezero":
		t.tiles.zero(in.Reg)
	case "tileloadd", "tileloaddt1":
		rows := make([]byte, s.rows*s.colsb)
		if err := t.transfer(unix.ProcessVMReadv, rows, base, index, s.rows); err != nil {
			return err
		}
		t.tiles.load(in.Reg, rows)
	case "tilestored":
		return t.transfer(unix.ProcessVMWritev, t.tiles.store(in.Reg), base, index, s.rows)
	default: // products
		if !t.tiles.multiplies(in.Reg, in.RM, in.V) {
			return errUndefined
		}
		if signs, ok := bytesSigned[in.Name]; ok {
			t.tiles.multiplyBytes(in.Reg, in.RM, in.V, signs)
		} else {
			t.tiles.multiply(in.Reg, in.RM, in.V)
		}
	}
	return nil
}

type transferFunc = func(pid int, local []unix.Iovec, remote []unix.RemoteIovec, flags uint) (int, error)

// transfer copies rows between b, where they lie one behind the other, and the
// thread's memory.
func (t *thread) transfer(copyRows transferFunc, b []byte, address, stride uint64, rows int) error {
	width := len(b) / rows
	n, err := copyRows(t.id, local(b), remote(address, stride, rows, width), 0)
	switch {
	case n == len(b):
		return nil
	case err == nil || errors.Is(err, unix.EFAULT): // n bytes went well
		n = max(n, 0)
		return &segmentFault{codeMap, address + uint64(n/width)*stride + uint64(n%width)}
	}
	return err
}

func local(b []byte) []unix.Iovec {
	return []unix.Iovec{{Base: unsafe.SliceData(b), Len: uint64(len(b))}}
}

func remote(address, stride uint64, rows, width int) []unix.RemoteIovec {
	v := make([]unix.RemoteIovec, rows)
	for i := range v {
		v[i] = unix.RemoteIovec{Base: uintptr(address + uint64(i)*stride), Len: width}
	}
	return v
}
