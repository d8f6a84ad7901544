package cpu

import (
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"sync"
)

// Model returns what the processor calls itself, with family, model and stepping where
// it is an x86, or what Linux knows about it; "" if nobody says.
func Model() string { return model() }

var model = sync.OnceValue(func() string {
	if name := brand(cpuid); name != "" {
		return name
	}
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	return cpuinfoModel(string(text))
})

// brand reads leaves 8000_0002 to 8000_0004, 48 characters, and the signature in leaf 1.
func brand(cpuid func(leaf, sub uint32) (a, b, c, d uint32)) string {
	const first, last = 0x8000_0002, 0x8000_0004
	if most, _, _, _ := cpuid(0x8000_0000, 0); most < last || most >= 0x8001_0000 {
		return ""
	}
	var text []byte
	for leaf := uint32(first); leaf <= last; leaf++ {
		a, b, c, d := cpuid(leaf, 0)
		for _, register := range []uint32{a, b, c, d} {
			text = binary.LittleEndian.AppendUint32(text, register)
		}
	}
	name := printable(string(text))
	if name == "" {
		return ""
	}
	signature, _, _, _ := cpuid(1, 0)
	family, model := familyOf(signature), signature>>4&15
	if family == 6 || family >= 15 {
		model += signature >> 16 & 15 << 4
	}
	return fmt.Sprintf("%s, family %d model %d stepping %d", name, family, model, signature&15)
}

// familyOf returns the family in a signature.
func familyOf(signature uint32) uint32 {
	family := signature >> 8 & 15
	if family == 15 {
		family += signature >> 20 & 255
	}
	return family
}

// Zen reports whether the processor is AMD's, of the family of Zen or a later one.
var Zen = sync.OnceValue(func() bool { return zen(cpuid) })

func zen(cpuid func(leaf, sub uint32) (a, b, c, d uint32)) bool {
	_, b, c, d := cpuid(0, 0)
	var maker []byte
	for _, register := range []uint32{b, d, c} {
		maker = binary.LittleEndian.AppendUint32(maker, register)
	}
	signature, _, _, _ := cpuid(1, 0)
	return string(maker) == "AuthenticAMD" && familyOf(signature) >= 23
}

// cpuinfoModel reads what Linux writes about its first processor.
func cpuinfoModel(text string) string {
	fields := make(map[string]string)
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, ":")
		name = strings.ToLower(strings.TrimSpace(name))
		if _, again := fields[name]; !again {
			fields[name] = printable(value)
		}
	}
	for _, name := range []string{"model name", "cpu", "processor 0"} {
		if fields[name] != "" {
			return fields[name]
		}
	}
	if part := fields["cpu part"]; part != "" { // arm64
		return fmt.Sprintf("implementer %s part %s variant %s revision %s", fields["cpu implementer"], part, fields["cpu variant"], fields["cpu revision"])
	}
	return ""
}

// printable returns the words of a text without characters that are not ASCII's
// printable ones.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return ' '
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}
