package bench

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"
)

// TestKilled: a program that hangs ends with octavo, even if octavo is killed.
func TestKilled(t *testing.T) {
	needProcesses(t)
	alive, held, err := os.Pipe() // the other end is open as long as one of the two runs
	if err != nil {
		t.Fatal(err)
	}
	defer alive.Close()
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), fakeVariable+"=parent")
	parent.ExtraFiles = []*os.File{held}
	output, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	held.Close()
	line, _ := bufio.NewReader(output).ReadString('\n')
	time.Sleep(100 * time.Millisecond) // until the request has been read
	parent.Process.Kill()
	parent.Wait()
	if line != "it runs\n" {
		t.Fatalf("the parent said %q", line)
	}
	alive.SetReadDeadline(time.Now().Add(30 * time.Second))
	if _, err := alive.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the program outlives octavo: %v", err)
	}
}
