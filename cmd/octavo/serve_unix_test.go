//go:build unix

package main

import (
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSignalsStopServe stops a server that waits for requests, and one that has none to
// wait for any more.
func TestSignalsStopServe(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, 0} {
		p := prepare(t, "", "serve")
		p.Stdout = nil
		stdin, err := p.StdinPipe()
		require.NoError(t, err)
		stdout, err := p.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, p.Start())
		defer p.Process.Kill()
		greeting := make([]byte, 40)
		_, err = io.ReadFull(stdout, greeting)
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(string(greeting), "OCTF"))
		require.Contains(t, string(greeting), `{"protocol":1,`)
		if s == 0 {
			require.NoError(t, stdin.Close())
			require.Zero(t, p.wait(t), "%s", &p.stderr)
			require.Empty(t, p.stderr.String())
			continue
		}
		require.NoError(t, p.Process.Signal(s))
		require.Equal(t, 128+int(s), p.wait(t))
		require.Equal(t, "octavo: "+interruption{s}.Error()+": 0 requests were answered\n", p.stderr.String())
	}
}

// TestServeRefuses has what is no frame said on both ways out.
func TestServeRefuses(t *testing.T) {
	var stdout, stderr strings.Builder
	require.Equal(t, exitData, run([]string{"serve"}, strings.NewReader("hello, world"), &stdout, &stderr))
	require.Contains(t, stdout.String(), `{"error":{"kind":"frame","message":"no frame: the input ends after 12 of the 16 bytes that begin one"}}`)
	require.Equal(t, "octavo: no frame: the input ends after 12 of the 16 bytes that begin one\n", stderr.String())
	require.Equal(t, exitUsage, run([]string{"serve", "x"}, strings.NewReader(""), &stdout, &stderr))
}
