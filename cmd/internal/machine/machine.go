// Package machine says which octavo this is and what it runs on.
package machine

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/octavo-fp8/octavo/internal/cpu"
)

// Info is what octavo version prints.
type Info struct {
	Build
	Go         string   `json:"go"`
	OS         string   `json:"os"`
	Arch       string   `json:"arch"`
	GOMAXPROCS int      `json:"gomaxprocs"`
	Level      string   `json:"level"`
	Features   []string `json:"features"`
	Model      string   `json:"model"`  // of the processor, "" if unknown
	Caches     []Cache  `json:"caches"` // of data, nearest first
	CachesFrom string   `json:"cachesFrom"`
}

// Cache is a level of caches.
type Cache struct {
	Level    int `json:"level"`
	Bytes    int `json:"bytes"`
	SharedBy int `json:"sharedBy"` // logical processors; 0 if unknown
}

const devel = "(devel)" // the version of what has none

// Build says from what a program was built.
type Build struct {
	Version string `json:"version"`
	// Commit is that of the sources, and Modified whether they had changes beside it; ""
	// where the go command did not record it, as go run does not.
	Commit   string `json:"commit"`
	Modified bool   `json:"modified"`
}

// buildOf reads what the go command recorded.
func buildOf(info *debug.BuildInfo) Build {
	b := Build{Version: devel}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// String returns the version and the commit.
func (b Build) String() string {
	switch {
	case b.Commit == "" && b.Version == devel:
		return b.Version + ", commit not recorded"
	case b.Commit == "": // a version names one
		return b.Version
	case b.Modified:
		return b.Version + ", commit " + b.Commit + " with changes"
	}
	return b.Version + ", commit " + b.Commit
}

// Platform says in a line which octavo this is, for which system.
func (m Info) Platform() string {
	return fmt.Sprintf("octavo %s, %s, %s/%s", m.Version, m.Go, m.OS, m.Arch)
}

// Current describes this program and the machine that it runs on.
func Current() Info {
	m := Info{
		Build:      Build{Version: devel},
		Go:         runtime.Version(),
		OS:         runtime.GOOS,
		Arch:       runtime.GOARCH,
		GOMAXPROCS: runtime.GOMAXPROCS(0),
		Level:      cpu.Current().String(),
		Features:   append([]string{}, cpu.Features()...),
		Model:      cpu.Model(),
		CachesFrom: cpu.CachesFrom(),
	}
	for _, c := range cpu.Caches() {
		m.Caches = append(m.Caches, Cache{c.Level, c.Bytes, c.SharedBy})
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		m.Build = buildOf(info)
	}
	return m
}

// WriteText writes it for people.
func (m Info) WriteText(w io.Writer) error {
	features := strings.Join(m.Features, " ")
	if features == "" {
		features = "none"
	}
	_, err := fmt.Fprintf(w, "octavo %s\n%s %s/%s\nGOMAXPROCS %d\nlevel %s\nprocessor features: %s\nprocessor: %s\ncaches: %s\n",
		m.Build, m.Go, m.OS, m.Arch, m.GOMAXPROCS, m.Level, features, m.Processor(), m.CacheText())
	return err
}

// Processor returns the model, or that it is unknown.
func (m Info) Processor() string {
	if m.Model == "" {
		return "unknown"
	}
	return m.Model
}

// CacheText names the caches and where that comes from.
func (m Info) CacheText() string {
	var texts []string
	for _, c := range m.Caches {
		text := fmt.Sprintf("L%d %s", c.Level, bytesText(c.Bytes))
		if c.SharedBy > 1 {
			text += fmt.Sprintf(" for %d", c.SharedBy)
		}
		texts = append(texts, text)
	}
	text := strings.Join(texts, ", ")
	if m.CachesFrom == "defaults" {
		text += " (assumed: the machine does not say)"
	}
	return text
}

func bytesText(n int) string {
	if n >= 1<<20 {
		return strconv.FormatFloat(float64(n)/(1<<20), 'f', -1, 64) + " MiB"
	}
	return strconv.FormatFloat(float64(n)/(1<<10), 'f', -1, 64) + " KiB"
}
