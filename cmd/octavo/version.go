package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/jsonout"
	"github.com/octavo-fp8/octavo/internal/cpu"
)

const versionLong = `Version prints octavo's version, the Go version, operating system and
architecture that it was built with, how many threads it uses (GOMAXPROCS), and
which of the processor's extensions for FP8 there are: avx2, fma, avx512f, bw,
dq, vl, vbmi, bf16 and amx-bf16 on amd64; asimd, asimdhp, asimddp and sve on
arm64; and the level of the kernels in use: generic, neon, avx2, avx512 or amx.
The environment variable OCTAVO_LEVEL forces one. Results depend on none of
these.`

func newVersionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print version, platform and processor features",
		Long:    versionLong,
		Example: "  octavo version --json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := currentVersion()
			if asJSON {
				return jsonout.Print(cmd.OutOrStdout(), v)
			}
			return v.print(cmd.OutOrStdout())
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

type version struct {
	Version    string   `json:"version"`
	Go         string   `json:"go"`
	OS         string   `json:"os"`
	Arch       string   `json:"arch"`
	GOMAXPROCS int      `json:"gomaxprocs"`
	Level      string   `json:"level"`
	Features   []string `json:"features"`
}

func currentVersion() version {
	v := version{
		Version:    "(devel)",
		Go:         runtime.Version(),
		OS:         runtime.GOOS,
		Arch:       runtime.GOARCH,
		GOMAXPROCS: runtime.GOMAXPROCS(0),
		Level:      cpu.Current().String(),
		Features:   append([]string{}, cpu.Features()...),
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	return v
}

func (v version) print(w io.Writer) error {
	features := strings.Join(v.Features, " ")
	if features == "" {
		features = "none"
	}
	_, err := fmt.Fprintf(w, "octavo %s\n%s %s/%s\nGOMAXPROCS %d\nlevel %s\nprocessor features: %s\n",
		v.Version, v.Go, v.OS, v.Arch, v.GOMAXPROCS, v.Level, features)
	return err
}
