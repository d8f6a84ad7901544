package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/machine"
	"github.com/octavo-fp8/octavo/internal/cpu"
)

func TestVersion(t *testing.T) {
	text := succeed(t, "version")
	require.Regexp(t, `^octavo \S+(, commit .+)?\n`, text)
	line, _, _ := strings.Cut(text, "\n")
	require.Equal(t, line+"\n", succeed(t, "--version"))
	require.Contains(t, text, fmt.Sprintf("\n%s %s/%s\nGOMAXPROCS %d\nlevel %v\nprocessor features: ",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), cpu.Current()))

	var v machine.Info
	require.NoError(t, json.Unmarshal([]byte(succeed(t, "version", "--json")), &v))
	require.Equal(t, machine.Current(), v)
	for _, f := range v.Features {
		require.Contains(t, text, " "+f)
	}
	for _, key := range []string{"version", "commit", "modified", "go", "os"} {
		require.Contains(t, succeed(t, "version", "--json"), `"`+key+`": `)
	}
	fail(t, 2, `want no arguments, there is "now"`, "version", "now")
}
