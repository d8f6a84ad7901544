// Package machine says which octavo this is and what it runs on.
package machine

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/octavo-fp8/octavo/internal/cpu"
)

// Info is what octavo version prints.
type Info struct {
	Version    string   `json:"version"`
	Go         string   `json:"go"`
	OS         string   `json:"os"`
	Arch       string   `json:"arch"`
	GOMAXPROCS int      `json:"gomaxprocs"`
	Level      string   `json:"level"`
	Features   []string `json:"features"`
}

// Current describes this program and the machine that it runs on.
func Current() Info {
	m := Info{
		Version:    "(devel)",
		Go:         runtime.Version(),
		OS:         runtime.GOOS,
		Arch:       runtime.GOARCH,
		GOMAXPROCS: runtime.GOMAXPROCS(0),
		Level:      cpu.Current().String(),
		Features:   append([]string{}, cpu.Features()...),
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		m.Version = info.Main.Version
	}
	return m
}

// WriteText writes it for people.
func (m Info) WriteText(w io.Writer) error {
	features := strings.Join(m.Features, " ")
	if features == "" {
		features = "none"
	}
	_, err := fmt.Fprintf(w, "octavo %s\n%s %s/%s\nGOMAXPROCS %d\nlevel %s\nprocessor features: %s\n",
		m.Version, m.Go, m.OS, m.Arch, m.GOMAXPROCS, m.Level, features)
	return err
}
