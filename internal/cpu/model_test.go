package cpu

import (
	"runtime"
	"testing"
)

func TestBrand(t *testing.T) {
	leaves := map[uint32][4]uint32{
		0x8000_0000: {0x8000_0008},
		0x8000_0002: {0x65_74_6e_49, 0x2952_286c, 0x6f65_5820, 0x2952_286e}, // "Intel(R) Xeon(R)"
		0x8000_0003: {0x7550_4320, 0, 0, 0},                                 // " CPu"
		0x8000_0004: {},
		1:           {0x000806f8},
	}
	read := func(leaf, _ uint32) (a, b, c, d uint32) { l := leaves[leaf]; return l[0], l[1], l[2], l[3] }
	if got, want := brand(read), "Intel(R) Xeon(R) CPu, family 6 model 143 stepping 8"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	leaves[1] = [4]uint32{0x00b40f40} // AMD's: family 15 + 11
	if got, want := brand(read), "Intel(R) Xeon(R) CPu, family 26 model 68 stepping 0"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	leaves[0x8000_0000] = [4]uint32{0x8000_0001}
	if got := brand(read); got != "" {
		t.Errorf("without a brand: %q", got)
	}
	if got := brand(func(_, _ uint32) (a, b, c, d uint32) { return 0, 0, 0, 0 }); got != "" {
		t.Errorf("without CPUID: %q", got)
	}
}

func TestZen(t *testing.T) {
	amd, intel := [4]uint32{0x10, 0x6874_7541, 0x444d_4163, 0x6974_6e65}, [4]uint32{0x20, 0x756e_6547, 0x6c65_746e, 0x4965_6e69}
	for _, c := range []struct {
		maker     [4]uint32
		signature uint32
		want      bool
	}{
		{amd, 0x00a20f10, true}, {amd, 0x00800f11, true}, {amd, 0x00b40f40, true}, // Zen 3, Zen, Zen 5
		{amd, 0x00600f20, false}, {intel, 0x000806f8, false}, {intel, 0x00a20f10, false}, {[4]uint32{}, 0, false},
	} {
		leaves := map[uint32][4]uint32{0: c.maker, 1: {c.signature}}
		if got := zen(func(leaf, _ uint32) (a, b, c, d uint32) { l := leaves[leaf]; return l[0], l[1], l[2], l[3] }); got != c.want {
			t.Errorf("%x: got %v, want %v", c.signature, got, c.want)
		}
	}
}

func TestCPUInfo(t *testing.T) {
	for want, text := range map[string]string{
		"":                           "",
		"Intel(R) Xeon(R) Processor": "processor\t: 0\nmodel\t\t: 143\nmodel name\t: Intel(R)  Xeon(R) Processor\x01\nmodel name\t: another\n",
		"implementer 0x41 part 0xd0c variant 0x3 revision 1": "processor\t: 0\nCPU implementer\t: 0x41\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\nCPU revision\t: 1\n",
		"POWER9, altivec supported":                          "processor\t: 0\ncpu\t\t: POWER9, altivec supported\n",
	} {
		if got := cpuinfoModel(text); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestModel(t *testing.T) {
	if runtime.GOARCH == "amd64" && cpuidWorks() && Model() == "" {
		t.Error("an x86 without a name")
	}
}

func cpuidWorks() bool { most, _, _, _ := cpuid(0x8000_0000, 0); return most != 0 }
