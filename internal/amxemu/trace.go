//go:build linux && amd64

package amxemu

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// tracer runs a process and executes the AMX instructions of its threads.
type tracer struct {
	group   int            // process group: the process's id
	threads map[int]*tiles // by id
	counts  map[string]int // instructions executed, by name
}

// errNotTraced says that the system does not let this process trace another.
var errNotTraced = errors.New("ptrace is not permitted")

// start starts a process under a tracer. The calling goroutine must be locked to
// its thread, which is the one that traces.
func start(argv, env []string, output *os.File) (*tracer, error) {
	p, err := os.StartProcess(argv[0], argv, &os.ProcAttr{
		Env:   env,
		Files: []*os.File{nil, output, output},
		Sys:   &syscall.SysProcAttr{Ptrace: true, Setpgid: true},
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotTraced, err)
	}
	t := &tracer{group: p.Pid, threads: map[int]*tiles{}, counts: map[string]int{}}
	if err := p.Release(); err != nil {
		return nil, err
	}
	if _, _, err := t.wait(); err != nil { // it stops before its first instruction
		return nil, err
	}
	if err := t.try(); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", errNotTraced, err), unix.Kill(t.group, unix.SIGKILL))
	}
	return t, unix.PtraceCont(t.group, 0)
}

// try tries what the tracer does later.
func (t *tracer) try() error {
	if err := unix.PtraceSetOptions(t.group, unix.PTRACE_O_TRACECLONE|unix.PTRACE_O_EXITKILL); err != nil {
		return err
	}
	th := thread{id: t.group}
	if err := unix.PtraceGetRegs(t.group, &th.regs); err != nil {
		return err
	}
	var code [1]byte
	return th.transfer(unix.ProcessVMReadv, code[:], th.regs.Rip, 0, 1)
}

// wait waits for a thread of the process to stop or end.
func (t *tracer) wait() (id int, status unix.WaitStatus, err error) {
	for {
		id, err = unix.Wait4(-t.group, &status, unix.WALL, nil)
		if err != unix.EINTR {
			return id, status, err
		}
	}
}

// run traces the process to its end.
func (t *tracer) run() (unix.WaitStatus, error) {
	for {
		id, status, err := t.wait()
		if err != nil {
			return status, err
		}
		if !status.Stopped() {
			delete(t.threads, id)
			if id == t.group {
				return status, nil
			}
			continue
		}
		err = t.resume(id, status)
		if err != nil && !errors.Is(err, unix.ESRCH) { // it has been killed meanwhile
			return status, errors.Join(err, unix.Kill(t.group, unix.SIGKILL))
		}
	}
}

// resume lets a thread go on: with the signal that stopped it, unless that was for
// the tracer only.
func (t *tracer) resume(id int, status unix.WaitStatus) error {
	signal := status.StopSignal()
	switch {
	case signal == unix.SIGSTOP: // a new thread begins with it
		signal = 0
	case status.TrapCause() == unix.PTRACE_EVENT_CLONE:
		signal = 0
	case signal == unix.SIGILL:
		if t.threads[id] == nil {
			t.threads[id] = &tiles{}
		}
		var err error
		if signal, err = t.emulate(&thread{id: id, tiles: t.threads[id]}); err != nil {
			return err
		}
	}
	return unix.PtraceCont(id, int(signal))
}

// emulate executes the instructions of AMX that the thread has come to and returns
// the signal that it gets: none if there was one at least. A fault behind others
// comes again.
func (t *tracer) emulate(th *thread) (unix.Signal, error) {
	if err := unix.PtraceGetRegs(th.id, &th.regs); err != nil {
		return 0, err
	}
	for first := true; ; first = false {
		in, length, ok := th.next()
		err := errUndefined
		if ok {
			err = th.execute(in)
		}
		if err == nil {
			th.regs.Rip += uint64(length)
			t.counts[in.Name]++
			continue
		}
		if !first {
			return 0, unix.PtraceSetRegs(th.id, &th.regs)
		}
		var fault *segmentFault
		switch {
		case errors.As(err, &fault):
			return unix.SIGSEGV, fault.replaceSignal(th.id)
		case err == errUndefined:
			return unix.SIGILL, nil
		}
		return 0, err
	}
}

// replaceSignal makes the signal for which a thread has stopped that of the fault.
func (f *segmentFault) replaceSignal(id int) error {
	info := struct {
		signal, errno, code, _ int32
		address                uint64
		_                      [104]byte
	}{signal: int32(unix.SIGSEGV), code: f.code, address: f.address}
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SETSIGINFO, uintptr(id), 0, uintptr(unsafe.Pointer(&info)), 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// result is what a traced process has done.
type result struct {
	output string
	status unix.WaitStatus
	counts map[string]int
}

// trace runs a process to its end.
func trace(argv, env []string) (r result, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	output, err := os.CreateTemp("", "amxemu")
	if err != nil {
		return r, err
	}
	defer os.Remove(output.Name())
	defer output.Close()
	t, err := start(argv, env, output)
	if err != nil {
		return r, err
	}
	r.status, err = t.run()
	r.counts = t.counts
	text, readErr := os.ReadFile(output.Name())
	r.output = string(text)
	return r, errors.Join(err, readErr)
}
