package testutil

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Kills is a test of a run that is killed again and again, each time in a process of its
// own, which goes on in the directory of those before it and says on its standard output,
// in lines of two words, "resumed" and at which step it begins, "step" and how many it has
// done, "bits" and a hash of what it has in the end, or "error" and what went wrong.
type Kills struct {
	Test     string // its name: a process runs that again, where [Kills.Process] is called
	Kills    int    // how many
	Interval int    // the most steps that a kill may lose

	// Whole are the arguments of a run that is not killed.
	Whole []string

	// Life returns the arguments of a process that is to be killed some time after it has
	// said a word. One that is faster comes to its end, and another run begins.
	Life func(kill int, random *rand.Rand) (args []string, word string, after time.Duration)
}

func (k Kills) variable() string { return "OCTAVO_KILLED_" + strings.ToUpper(k.Test) }

// Process calls run with the arguments of the process and the directory of its run, and
// reports true, unless this is the test itself.
func (k Kills) Process(run func(args []string, dir string) error) bool {
	text, ok := os.LookupEnv(k.variable())
	if !ok {
		return false
	}
	args := strings.Split(text, "\n")
	last := len(args) - 1
	if err := run(args[:last], args[last]); err != nil {
		fmt.Println("error", err)
	}
	return true
}

// life is what a process has said.
type life struct {
	resumed, step int // -1: it did not come that far
	bits          string
}

// Run kills. It fails the test if a kill loses more than Interval steps, or if a run that
// was killed ends with other bits than one that was not.
func (k Kills) Run(t *testing.T) {
	t.Helper()
	root := t.TempDir()
	want := k.live(t, k.Whole, filepath.Join(root, "whole"), "", 0)
	if want.bits == "" {
		t.Fatalf("a run that was not killed did not come to its end: %+v", want)
	}
	random := rand.New(rand.NewPCG(20, 5))
	run, done, resuming, finished, most := 0, 0, 0, 0, 0
	for kill := range k.Kills {
		dir := filepath.Join(root, fmt.Sprint("run", run))
		args, word, after := k.Life(kill, random)
		got := k.live(t, args, dir, word, after)
		if got.resumed < 0 {
			resuming++
			continue
		}
		most = max(most, k.lost(t, kill, done, got))
		done = max(got.resumed, got.step)
		if got.bits != "" {
			requireBits(t, want, got)
			run, done, finished = run+1, 0, finished+1
		}
	}
	got := k.live(t, k.Whole, filepath.Join(root, fmt.Sprint("run", run)), "", 0)
	most = max(most, k.lost(t, k.Kills, done, got))
	requireBits(t, want, got)
	t.Logf("%d kills, %d of them while resuming; %d runs came to their end before; "+
		"at most %d steps were lost, of %d", k.Kills, resuming, finished, most, k.Interval)
}

func (k Kills) lost(t *testing.T, kill, done int, got life) int {
	t.Helper()
	lost := done - got.resumed
	if lost > k.Interval {
		t.Fatalf("before life %d the run was at step %d, and goes on at %d: %d steps are lost, "+
			"and not at most %d", kill, done, got.resumed, lost, k.Interval)
	}
	return lost
}

func requireBits(t *testing.T, want, got life) {
	t.Helper()
	if got.bits != want.bits {
		t.Fatalf("a run that was killed has the bits %q: want %q", got.bits, want.bits)
	}
}

// live starts a process, kills it some time after it said a word, and returns what it has
// said.
func (k Kills) live(t *testing.T, args []string, dir, word string, after time.Duration) life {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^"+k.Test+"$")
	text := strings.Join(append(append([]string{}, args...), dir), "\n")
	child.Env = append(os.Environ(), k.variable()+"="+text)
	output, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	NoProcess(t, child.Start())
	l := life{resumed: -1, step: -1}
	for lines := bufio.NewScanner(output); lines.Scan(); {
		said, value, _ := strings.Cut(lines.Text(), " ")
		switch said {
		case "resumed":
			l.resumed, err = strconv.Atoi(value)
		case "step":
			l.step, err = strconv.Atoi(value)
		case "bits":
			l.bits = value
		case "error":
			t.Errorf("a process failed: %s", value)
		}
		if err != nil {
			t.Fatal(err)
		}
		if said == word {
			word = ""
			time.AfterFunc(after, func() { _ = child.Process.Kill() })
		}
	}
	_ = child.Wait()
	return l
}
