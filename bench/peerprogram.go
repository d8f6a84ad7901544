package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// PeerAbout is what the program of bench/peers says about itself.
type PeerAbout struct {
	Protocol     int      `json:"protocol"`
	BLAS         string   `json:"blas"` // version and configuration of OpenBLAS
	Core         string   `json:"core"` // which processor OpenBLAS has chosen its kernels for
	Parallel     string   `json:"parallel"`
	OneDNN       string   `json:"oneDNN"`       // its version; "" without it
	Instructions string   `json:"instructions"` // that oneDNN uses, as far as known
	Routines     []string `json:"routines"`
}

// ErrPeers is behind errors of the program of bench/peers: it cannot be started, ends
// too early, keeps silent, or says what makes no sense or is wrong.
var ErrPeers = errors.New("the program of the peers")

// unable is why a routine cannot be had here; the program goes on.
type unable struct{ why string }

func (u unable) Error() string { return u.why }

// peerProgram is the program of bench/peers while it runs. bench/peers/peers.c describes
// what it is asked and answers.
type peerProgram struct {
	about    PeerAbout
	command  *exec.Cmd
	requests io.WriteCloser
	answers  <-chan string // closed when there are no more
	complain *bytes.Buffer // what it wrote to standard error; to be read once it has ended
	patience time.Duration
	stop     <-chan struct{} // closed when answers are no longer waited for, but for grace
	grace    time.Duration
}

// patience is how long an answer may take: the largest products take seconds.
const patience = 5 * time.Minute

// grace is how long one may take after an interrupt, so that a round can be finished.
const grace = 30 * time.Second

// ofLibraries begin the names of variables by which users handicap, or change, OpenBLAS,
// OpenMP and oneDNN.
var ofLibraries = []string{"OPENBLAS_", "GOTO_", "OMP_", "GOMP_", "DNNL_", "ONEDNN_"}

// withoutLibraries returns an environment without such variables.
func withoutLibraries(environment []string) []string {
	return slices.DeleteFunc(slices.Clone(environment), func(v string) bool {
		return slices.ContainsFunc(ofLibraries, func(prefix string) bool { return strings.HasPrefix(v, prefix) })
	})
}

// startPeers starts the program; core is what OpenBLAS is told to choose its kernels
// for, or "".
func startPeers(path, core string) (*peerProgram, error) {
	path, err := filepath.Abs(path) // a bare name would be looked for in PATH
	if err != nil {
		return nil, err
	}
	command := exec.Command(path)
	// Threads that wait must not take the processor from octavo, whose turn is next: they
	// wait actively for about a millisecond and not for tens of them.
	command.Env = append(withoutLibraries(os.Environ()), "OPENBLAS_THREAD_TIMEOUT=20", "GOMP_SPINCOUNT=20000")
	if core != "" {
		command.Env = append(command.Env, "OPENBLAS_CORETYPE="+core)
	}
	endWithUs(command)
	return startProgram(command, patience)
}

func startProgram(command *exec.Cmd, patience time.Duration) (*peerProgram, error) {
	p := &peerProgram{command: command, complain: new(bytes.Buffer), patience: patience, grace: grace}
	command.Stderr = p.complain
	requests, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPeers, err)
	}
	answers := make(chan string, 1)
	p.requests, p.answers = requests, answers
	go func() {
		defer close(answers)
		for lines := bufio.NewScanner(output); lines.Scan(); {
			answers <- lines.Text()
		}
	}()
	if err := p.ask(&p.about, "about"); err != nil {
		p.close()
		return nil, err
	}
	if p.about.Protocol != 1 {
		p.close()
		return nil, fmt.Errorf("%w is of another version: build it again", ErrPeers)
	}
	return p, nil
}

// close ends the program.
func (p *peerProgram) close() {
	p.requests.Close()
	p.command.Process.Kill()
	for range p.answers { // so that nobody waits to write one
	}
	p.command.Wait()
}

// ask sends a request and reads the answer. After any error but unable the program is of
// no more use.
func (p *peerProgram) ask(answer any, format string, arguments ...any) error {
	request := fmt.Sprintf(format, arguments...)
	select {
	case line, ok := <-p.answers:
		if ok {
			return fmt.Errorf("%w said %.100q without being asked", ErrPeers, line)
		}
	default:
	}
	_, sent := io.WriteString(p.requests, request+"\n")
	timer := time.NewTimer(p.patience)
	defer timer.Stop()
	wait, stop := p.patience, p.stop
	for {
		select {
		case line, ok := <-p.answers:
			if !ok {
				return p.ended(request)
			}
			return readAnswer(line, request, answer)
		case <-stop:
			stop, wait = nil, min(p.grace, p.patience)
			timer.Reset(wait)
		case <-timer.C:
			if sent != nil {
				return p.ended(request)
			}
			p.command.Process.Kill() // so that nobody else waits for it
			return fmt.Errorf("%w has not answered %q for %v", ErrPeers, request, wait)
		}
	}
}

// ended says that the program has, and what it said last.
func (p *peerProgram) ended(request string) error {
	p.requests.Close()
	p.command.Process.Kill() // it may have closed its output only
	status := "it ended"
	if err := p.command.Wait(); err != nil {
		status = err.Error()
	}
	if last := strings.TrimSpace(p.complain.String()); last != "" {
		status += fmt.Sprintf(": %.200q", last)
	}
	return fmt.Errorf("%w has not answered %q: %s", ErrPeers, request, status)
}

// readAnswer reads the answer to a request.
func readAnswer(line, request string, answer any) error {
	var failure struct{ Error string }
	if json.Unmarshal([]byte(line), &failure) == nil && failure.Error != "" {
		return unable{failure.Error}
	}
	if err := json.Unmarshal([]byte(line), answer); err != nil {
		return fmt.Errorf("%w answered %q with %.100q", ErrPeers, request, line)
	}
	return nil
}

// shape says what the next routines work on, and forgets all before. It returns how many
// threads OpenBLAS will use.
func (p *peerProgram) shape(s Shape, threads int) (used int, err error) {
	var answer struct{ Threads int }
	err = p.ask(&answer, "shape %d %d %d %d", s.M, s.N, s.K, threads)
	return answer.Threads, err
}

// prepare makes a routine ready, or says in an error of type unable why it cannot be
// had, and checks its result. It returns the format of weights, or "" if it is plain.
func (p *peerProgram) prepare(routine string, s Shape) (format string, err error) {
	if !slices.Contains(p.about.Routines, routine) {
		return "", unable{"the program was built without it"}
	}
	var answer struct{ Format string }
	if err := p.ask(&answer, "prepare %s", routine); err != nil {
		return "", err
	}
	for _, e := range someElements(s) {
		var got struct{ Value *float64 }
		if err := p.ask(&got, "element %s %d %d", routine, e.row, e.column); err != nil {
			return "", fmt.Errorf("%w: %s, element [%d,%d]: %v", ErrPeers, routine, e.row, e.column, err)
		}
		want := peerResult(routine, s, e.row, e.column)
		if got.Value == nil || *got.Value != want {
			return "", fmt.Errorf("%w computes nonsense: %s of %v gives %v at [%d,%d], want %v", ErrPeers, routine, s, text(got.Value), e.row, e.column, want)
		}
	}
	return answer.Format, nil
}

func text(x *float64) string {
	if x == nil {
		return "nothing"
	}
	return fmt.Sprint(*x)
}

// run runs a routine some times in a row and returns how long that took.
func (p *peerProgram) run(routine string, count int) (time.Duration, error) {
	var answer struct{ Seconds float64 }
	if err := p.ask(&answer, "run %s %d", routine, count); err != nil {
		return 0, err
	}
	// Less than a nanosecond or more than it may take is no measurement.
	if !(answer.Seconds >= 1e-9 && answer.Seconds <= 2*p.patience.Seconds()) {
		return 0, fmt.Errorf("%w says that %s took %v s", ErrPeers, routine, answer.Seconds)
	}
	return time.Duration(answer.Seconds * 1e9), nil
}
