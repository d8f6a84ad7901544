package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/octavo-fp8/octavo/internal/testutil"
)

// The tests' program in a process of its own is the fake program, whose behaviour
// OCTAVO_BENCH_FAKE names.
const fakeVariable = "OCTAVO_BENCH_FAKE"

func TestMain(m *testing.M) {
	if behaviour := os.Getenv(fakeVariable); behaviour != "" {
		if len(os.Args) > 1 && os.Args[1] == "-m" {
			fakeLlama(os.Args)
			os.Exit(0)
		}
		fakeProgram(behaviour)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// fakeProgram answers as bench/peers does, but for one thing.
func fakeProgram(behaviour string) {
	if behaviour == "parent" { // of one that hangs, and that has this one's third file
		command := exec.Command(os.Args[0])
		command.Env = append(os.Environ(), fakeVariable+"=run:silent")
		command.ExtraFiles = []*os.File{os.NewFile(3, "")}
		endWithUs(command)
		p, err := startProgram(command, time.Minute)
		if err != nil {
			os.Exit(1)
		}
		p.shape(Shape{M: 1, N: 1, K: 1, Experts: 1}, 1)
		fmt.Println("it runs")
		p.run("openblas-sgemm", 1)
		os.Exit(1)
	}
	about := `{"protocol":1,"blas":"Fake 1","core":"` + fakeCore(behaviour) + `","routines":["openblas-sgemm","openblas-sgemv","openblas-sbgemm","memcpy","onednn-f32"]}`
	var s Shape
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var word, routine string
		var row, column int
		fmt.Sscan(lines.Text(), &word, &routine, &row, &column)
		answer := ""
		switch word {
		case "about":
			answer = about
		case "shape":
			fmt.Sscanf(lines.Text(), "shape %d %d %d", &s.M, &s.N, &s.K)
			answer = "{}"
		case "prepare":
			answer = `{"format":"xy"}`
			if routine == "openblas-sbgemm" {
				answer = `{"error":"it was built without it"}`
			}
		case "element":
			answer = fmt.Sprintf(`{"value":%v}`, peerResult(routine, s, row, column))
		case "run":
			answer = fmt.Sprintf(`{"seconds":%v}`, 1e-3*float64(row)) // row is the count
		}
		switch when, how, _ := strings.Cut(behaviour, ":"); {
		case when != word:
		case how == "silent":
			time.Sleep(time.Minute)
		case how == "ends":
			os.Exit(0)
		case how == "products": // of several rows it runs none
			if s.M > 1 {
				os.Exit(0)
			}
		case how == "oneDNN": // it refuses to run one routine
			if routine == "onednn-f32" {
				answer = `{"error":"out of memory"}`
			}
		case how == "fails":
			fmt.Fprintln(os.Stderr, "a reason")
			os.Exit(3)
		case how == "closes":
			os.Stdout.Close()
			time.Sleep(time.Minute)
		case how == "twice":
			answer += "\n" + answer
		case how == "long":
			answer = strings.Repeat("x", 1<<20)
		default:
			answer = how
		}
		fmt.Println(answer)
	}
}

func fakeCore(behaviour string) string {
	if core := os.Getenv("OPENBLAS_CORETYPE"); core != "" && core != "SkylakeX" {
		return core
	}
	return "Haswell"
}

func fake(t *testing.T, behaviour string, patience time.Duration) (*peerProgram, error) {
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), fakeVariable+"="+behaviour)
	p, err := startProgram(command, patience)
	if err == nil {
		t.Cleanup(p.close)
	}
	return p, err
}

// needProcesses ends a test where programs cannot be started.
func needProcesses(t *testing.T) {
	_, err := fake(t, "well", time.Minute)
	testutil.NoProcess(t, err)
}

// useFake does what a comparison does with the program.
func useFake(t *testing.T, behaviour string, patience time.Duration) (time.Duration, error) {
	first := time.Minute // to start
	if strings.HasPrefix(behaviour, "about:") {
		first = patience
	}
	p, err := fake(t, behaviour, first)
	if err != nil {
		return 0, err
	}
	p.patience = patience
	s := Shape{M: 2, N: 3, K: 40, Experts: 1}
	if _, err := p.shape(s, 1); err != nil {
		return 0, err
	}
	format, err := p.prepare("openblas-sgemm", s)
	if err != nil {
		return 0, err
	}
	if format != "xy" {
		t.Errorf("format %q", format)
	}
	if _, err := p.run("openblas-sgemm", 1); err != nil {
		return 0, err
	}
	return p.run("openblas-sgemm", 7)
}

func TestPeerProgram(t *testing.T) {
	needProcesses(t)
	d, err := useFake(t, "well", time.Minute)
	if err != nil || d != 7*time.Millisecond {
		t.Fatalf("%v, %v", d, err)
	}
	for behaviour, says := range map[string]string{
		"about:silent":         `has not answered "about" for `,
		"about:ends":           `has not answered "about": it ended`,
		"about:fails":          `"about": exit status 3: "a reason"`,
		"about:hello":          `answered "about" with "hello"`,
		"about:":               `answered "about" with ""`,
		"about:long":           `has not answered "about"`,
		"about:[1]":            `answered "about" with "[1]"`,
		`about:{"protocol":2}`: "is of another version: build it again",
		"shape:silent":         `has not answered "shape 2 3 40 1" for `,
		"shape:closes":         `has not answered "shape 2 3 40 1"`,
		"shape:fails":          "a reason",
		// What comes without being asked may be there in time, or be taken for the next answer.
		"prepare:twice":                 "without being asked|gives nothing at [0,0]",
		"prepare:{":                     `answered "prepare openblas-sgemm" with "{"`,
		"element:ends":                  `has not answered "element openblas-sgemm 0 0"`,
		`element:{"value":0.125}`:       "computes nonsense: openblas-sgemm of 2x3x40 gives 0.125 at [0,0], want ",
		"element:{}":                    "gives nothing at [0,0]",
		`element:{"error":"nan"}`:       "element [0,0]: nan",
		`element:{"value":"1"}`:         "answered",
		"run:ends":                      `has not answered "run openblas-sgemm 1"`,
		"run:{}":                        "says that openblas-sgemm took 0 s",
		`run:{"seconds":-1}`:            "took -1 s",
		`run:{"seconds":1e300}`:         "took 1e+300 s",
		`run:{"seconds":"1"}`:           "answered",
		`run:{"seconds":1}` + "\n{":     "without being asked|answered",
		`prepare:{"format":["x"]}`:      "answered",
		`about:{"protocol":1,"blas":2}`: "answered",
	} {
		patience := time.Minute
		if strings.HasSuffix(behaviour, ":silent") {
			patience = time.Second
		}
		start := time.Now()
		_, err := useFake(t, behaviour, patience)
		said := func(says string) bool { return strings.Contains(err.Error(), says) }
		if !errors.Is(err, ErrPeers) || !slices.ContainsFunc(strings.Split(says, "|"), said) {
			t.Errorf("%s: want %q, got %v", behaviour, says, err)
		}
		if wait := time.Since(start); wait > 50*time.Second {
			t.Errorf("%s: it took %v", behaviour, wait)
		}
	}
	_, err = useFake(t, `prepare:{"error":"not here"}`, time.Minute)
	if err != (unable{"not here"}) {
		t.Errorf("got %v", err)
	}
	if _, err := startPeers("no/such/program", ""); !errors.Is(err, ErrPeers) {
		t.Errorf("got %v", err)
	}
}

// TestPeerProgramInterrupted waits for the grace only.
func TestPeerProgramInterrupted(t *testing.T) {
	needProcesses(t)
	p, err := fake(t, "shape:silent", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	p.stop, p.grace = ctx.Done(), time.Millisecond
	time.AfterFunc(10*time.Millisecond, cancel)
	for _, says := range []string{`has not answered "shape 1 1 1 1" for 1ms`, `has not answered "shape 1 1 1 1": `} {
		if _, err := p.shape(Shape{M: 1, N: 1, K: 1, Experts: 1}, 1); !errors.Is(err, ErrPeers) || !strings.Contains(err.Error(), says) {
			t.Errorf("want %q, got %v", says, err)
		}
		p.grace = time.Minute // for its end, which is not at once
	}
}

// smallPeers is a suite that takes little time.
func smallPeers(program string) PeerSuite {
	s := NewPeerSuite(program, Levels()[:1])
	s.Shapes = []Shape{{M: 3, N: 40, K: 200, Experts: 1}, {M: 1, N: 40, K: 200, Experts: 1}, {M: 4, N: 33, K: 130, Experts: 2}}
	s.Workers, s.Elements, s.Turn, s.Limit = []int{1, 2}, 1024, time.Microsecond, 5*time.Millisecond
	return s
}

// TestPeerSuite compares octavo with the fake program.
func TestPeerSuite(t *testing.T) {
	needProcesses(t)
	t.Setenv(fakeVariable, "well")
	s := smallPeers(os.Args[0])
	began := 0
	r, err := s.Run(t.Context(), func(string) { began++ })
	if err != nil {
		t.Fatal(err)
	}
	if want := 3*2 + len(conversionContests); began != want || len(r.Done) != want || r.Cases != want {
		t.Errorf("%d began, %d of %d done", began, len(r.Done), r.Cases)
	}
	if !slices.Contains(r.Notes, "openblas-sbgemm: it was built without it") || !slices.Contains(r.Notes, "onednn-bf16: the program was built without it") {
		t.Errorf("notes %q", r.Notes)
	}
	to := make(map[string]bool)
	for _, c := range r.Done {
		if c.Rounds < 1 || len(c.Rates) < 2 || len(c.Ratios) < 1 {
			t.Errorf("%+v", c)
		}
		for _, rate := range c.Rates {
			if rate.By == "openblas-sgemm" && math.Abs(rate.Best*1e-3-2*3*40*200/1e9) > 1e-12 {
				t.Errorf("%+v: the fake takes a millisecond", rate)
			}
			if !(rate.Best >= rate.Median && rate.Median >= 0) || (rate.Core != "") != strings.HasPrefix(rate.By, "openblas") {
				t.Errorf("%+v", rate)
			}
		}
		for _, ratio := range c.Ratios {
			to[ratio.To] = true
			if ratio.Pairs != c.Rounds || !(0 < ratio.Low && ratio.Low <= ratio.Median && ratio.Median <= ratio.High) || math.IsInf(ratio.High, 0) {
				t.Errorf("%+v", ratio)
			}
		}
	}
	for _, name := range []string{"openblas-sgemm", "openblas-sgemv", "memcpy", "onednn-f32", OneProduct, plainEncode} {
		if !to[name] {
			t.Errorf("nothing is compared with %s, only with %v", name, to)
		}
	}
	if len(r.Ratios()) == 0 {
		t.Error("no ratios")
	}
}

// TestPeerSuiteStops ends a run before each of its comparisons.
func TestPeerSuiteStops(t *testing.T) {
	needProcesses(t)
	t.Setenv(fakeVariable, "well")
	s := smallPeers(os.Args[0])
	s.Workers = s.Workers[:1]
	for stop := range s.Cases() {
		ctx, cancel := context.WithCancel(t.Context())
		if stop == 0 {
			cancel()
		}
		began := 0
		r, err := s.Run(ctx, func(string) {
			if began++; began == stop {
				cancel()
			}
		})
		cancel()
		if err != nil || len(r.Done) != stop {
			t.Fatalf("%d comparisons done, want %d: %v", len(r.Done), stop, err)
		}
	}
}

// TestPeerSuiteRefuses ends with what is wrong with the program.
func TestPeerSuiteRefuses(t *testing.T) {
	needProcesses(t)
	for _, behaviour := range []string{"about:ends", "shape:fails", `element:{"value":0.015625}`, "run:ends"} {
		t.Setenv(fakeVariable, behaviour)
		_, err := smallPeers(os.Args[0]).Run(t.Context(), func(string) {})
		if !errors.Is(err, ErrPeers) {
			t.Errorf("%s: got %v", behaviour, err)
		}
	}
}

// TestPeerSuitePart keeps what was done before the program failed, and what others did
// where only one routine fails.
func TestPeerSuitePart(t *testing.T) {
	needProcesses(t)
	t.Setenv(fakeVariable, "run:products")
	r, err := smallPeers(os.Args[0]).Run(t.Context(), func(string) {})
	// Where there is one core, its program ends in a comparison, which goes on without it.
	if !errors.Is(err, ErrPeers) || len(r.Done) < len(conversionContests) || len(r.Done) > len(conversionContests)+1 {
		t.Errorf("%d comparisons done: %v", len(r.Done), err)
	}
	t.Setenv(fakeVariable, "run:oneDNN")
	s := smallPeers(os.Args[0])
	s.Shapes, s.Workers, s.Elements = s.Shapes[:1], []int{1}, 0
	r, err = s.Run(t.Context(), func(string) {})
	if err != nil || len(r.Done) != 1 || !slices.Equal(r.Failures, []string{"onednn-f32, 3x40x200 by 1: out of memory"}) {
		t.Fatalf("%d comparisons done, failures %q: %v", len(r.Done), r.Failures, err)
	}
	for _, rate := range r.Done[0].Rates {
		if rate.By == "onednn-f32" {
			t.Errorf("it failed and has a rate: %+v", rate)
		}
	}
}

// TestContest has one contestant that is twice as fast as another, and a machine that
// becomes slower all the time.
func TestContest(t *testing.T) {
	speed := 1000.0
	var order []string
	taking := func(r Rate, factor float64) *contestant {
		return &contestant{Rate: r, turn: func(time.Duration) (float64, error) {
			order = append(order, r.By)
			speed *= 0.99
			return factor * speed, nil
		}}
	}
	own := taking(Rate{By: Octavo, Level: "avx2"}, 2)
	peer := taking(Rate{By: "peer"}, 1)
	otherRoof := taking(Rate{By: Roof, Level: "generic"}, 1)
	turns := 0
	broken := &contestant{Rate: Rate{By: "broken"}, peer: true, turn: func(time.Duration) (float64, error) {
		if turns++; turns == 3 {
			return 0, errors.New("a reason")
		}
		return 1, nil
	}}
	var failures []string
	c, err := contest(Comparison{What: "x"}, []*contestant{own, peer, otherRoof, broken}, 0, func(c *Comparison) bool { return c.Rounds == 8 }, func(by string, err error) {
		failures = append(failures, by+": "+err.Error())
	})
	if !slices.Equal(failures, []string{"broken: a reason"}) || turns != 3 {
		t.Errorf("failures %q, %d turns", failures, turns)
	}
	if err != nil || c.Rounds != 8 || len(c.Ratios) != 1 || len(c.Rates) != 3 {
		t.Fatalf("%+v, %v", c, err)
	}
	if got := c.Ratios[0]; math.Abs(got.Median-2) > 1e-3 || math.Abs(got.Best-2/0.99) > 0.05 || got.To != "peer" {
		t.Errorf("%+v: want 2, since every second round goes backwards", got)
	}
	if want := []string{Octavo, "peer", Roof, Roof, "peer", Octavo, Octavo}; !slices.Equal(order[:7], want) {
		t.Errorf("order %v", order[:7])
	}
}

// TestLimit demands the rounds that an interval takes, but not after Ctrl-C.
func TestLimit(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := &peering{PeerSuite: PeerSuite{Limit: time.Second, Spread: 0.1}, ctx: ctx}
	wide := []RatioTo{{Ratio: Ratio{1, 0.5, 1.5, 5}}}
	for _, c := range []struct {
		Comparison
		want bool
	}{
		{Comparison{Rounds: leastPairs - 1, Seconds: 99, Ratios: wide}, false},
		{Comparison{Rounds: leastPairs, Seconds: 99, Ratios: wide}, true},
		{Comparison{Rounds: leastPairs, Seconds: 0.5, Ratios: wide}, false},
		{Comparison{Rounds: leastPairs, Seconds: 0.5}, true},
	} {
		if p.done(&c.Comparison) != c.want {
			t.Errorf("%+v: want %v", c.Comparison, c.want)
		}
	}
	cancel()
	if !p.done(&Comparison{Rounds: 1, Ratios: wide}) {
		t.Error("it goes on after an interrupt")
	}
}

// TestEnvironment leaves users' settings of the libraries out.
func TestEnvironment(t *testing.T) {
	got := withoutLibraries([]string{"PATH=/bin", "OPENBLAS_CORETYPE=Nehalem", "OMP_NUM_THREADS=1", "GOMP_SPINCOUNT=1", "DNNL_VERBOSE=1", "ONEDNN_MAX_CPU_ISA=AVX2", "GOTO_NUM_THREADS=1", "GOMAXPROCS=2"})
	if want := []string{"PATH=/bin", "GOMAXPROCS=2"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestColdWorker has a first run that takes twenty times as long as the others.
func TestColdWorker(t *testing.T) {
	var counts []int
	turn := worker(1, func(count int) (time.Duration, error) {
		counts = append(counts, count)
		if len(counts) == 1 {
			return 2 * time.Millisecond, nil
		}
		return time.Duration(count) * time.Millisecond / 10, nil
	})
	for range 2 {
		if _, err := turn(10 * time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	if want := []int{1, 5, 95, 1, 100}; !slices.Equal(counts, want) {
		t.Errorf("%v, want %v: a turn takes 10 ms", counts, want)
	}
}

// TestWorker counts runs of turns.
func TestWorker(t *testing.T) {
	for _, c := range []struct {
		each    time.Duration
		atLeast time.Duration
		want    []int // of two turns
	}{
		{time.Millisecond, 10 * time.Millisecond, []int{1, 10, 1, 10}},
		{30 * time.Millisecond, 10 * time.Millisecond, []int{1, 1, 1}}, // warm from then on
		{time.Millisecond, 0, []int{1, 1, 1, 1}},
	} {
		var counts []int
		turn := worker(3e6, func(count int) (time.Duration, error) {
			counts = append(counts, count)
			return time.Duration(count) * c.each, nil
		})
		for range 2 {
			rate, err := turn(c.atLeast)
			if want := 3e6 / float64(c.each.Nanoseconds()); err != nil || math.Abs(rate-want) > 1e-9 {
				t.Errorf("%+v: rate %v, want %v: %v", c, rate, want, err)
			}
		}
		if !slices.Equal(counts, c.want) {
			t.Errorf("%+v: %v", c, counts)
		}
	}
}

func TestCores(t *testing.T) {
	skylake := []string{"avx2", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl"}
	for _, c := range []struct {
		features []string
		want     []string
	}{
		{nil, nil},
		{[]string{"asimd", "sve"}, nil},
		{[]string{"fma", "avx2"}, []string{"Haswell"}},
		{skylake, []string{"Haswell", "SkylakeX"}},
		{append(slices.Clone(skylake), "avx512vbmi", "avx512bf16"), []string{"Haswell", "SkylakeX", "Cooperlake"}},
		{append(slices.Clone(skylake), "avx512bf16", "amx-bf16"), []string{"Haswell", "SkylakeX", "Cooperlake", "SapphireRapids"}},
	} {
		if got := cores(c.features); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.features, got, c.want)
		}
	}
}

// TestBuiltPeers runs the program itself, where it is built, through all its routines.
func TestBuiltPeers(t *testing.T) {
	const built = "peers/built/peers"
	if _, err := os.Stat(built); err != nil {
		if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" || testing.Short() {
			t.Skip("the peers are not built")
		}
		testutil.Lacking(t, "the peers are not built: run bench/peers/build")
	}
	p, err := startPeers(built, "")
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	for _, s := range []Shape{{M: 1, N: 1, K: 1, Experts: 1}, {M: 1, N: 70, K: 33, Experts: 1}, {M: 5, N: 70, K: 33, Experts: 1}, {M: 64, N: 48, K: 256, Experts: 1}, {M: 1, N: 4096, K: 1, Experts: 1}} {
		for _, threads := range []int{1, 2} {
			if used, err := p.shape(s, threads); err != nil || used != threads {
				t.Fatalf("%d threads of %d: %v", used, threads, err)
			}
			able := map[string]bool{}
			for _, routine := range p.about.Routines {
				_, err := p.prepare(routine, s)
				if _, ok := err.(unable); ok {
					continue
				}
				if err != nil {
					t.Fatalf("%v: %v", s, err)
				}
				able[routine] = true
				if d, err := p.run(routine, 3); err != nil || d <= 0 {
					t.Fatalf("%v: %s: %v, %v", s, routine, d, err)
				}
			}
			// A processor without AVX-512 has nothing but float32 in oneDNN.
			for _, routine := range []string{"openblas-sgemm", "onednn-f32", "onednn-f32-reordered"} {
				if !able[routine] {
					t.Errorf("%v: no %s, only %v of %v", s, routine, able, p.about.Routines)
				}
			}
		}
	}
	for _, request := range []string{"", "nonsense", "shape", "shape 1 2 3", "shape 0 1 1 1", "shape 1 1 99999999999999 1", "prepare nothing", "run openblas-sgemm 0", "element memcpy 9 9", strings.Repeat("x", 190)} {
		if err := p.ask(&struct{}{}, "%s", request); request != "" && err == nil {
			t.Errorf("%q was answered", request)
		} else if _, ok := err.(unable); !ok {
			t.Errorf("%q: %v", request, err)
		}
	}
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} { // for the whole group
		if err := p.command.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.shape(Shape{M: 1, N: 1, K: 1, Experts: 1}, 1); err != nil {
		t.Errorf("it has had enough: %v", err)
	}
}

// TestCoresByTurns: the fastest of three cores wins, and the others have forgotten their
// operands, but for one that is another routine's home.
func TestCoresByTurns(t *testing.T) {
	needProcesses(t)
	s := Shape{M: 2, N: 3, K: 40, Experts: 1}
	p := &peering{PeerSuite: PeerSuite{Turn: time.Millisecond}, ctx: t.Context(), report: &PeerReport{}}
	for _, seconds := range []string{"0.002", "0.001", "0.003", "0.004"} {
		program, err := fake(t, `run:{"seconds":`+seconds+`}`, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		p.programs = append(p.programs, program)
	}
	home := p.programs[3]
	if err := p.shape(home, s, 1); err != nil {
		t.Fatal(err)
	}
	best, err := p.fastestCore("openblas-sgemm", s, 1, []*peerProgram{home})
	if err != nil || best == nil || best.program != p.programs[1] {
		t.Fatalf("%v, %v", best, err)
	}
	for i, program := range p.programs {
		var got struct{ Value float64 }
		if err := program.ask(&got, "element openblas-sgemm 1 2"); err != nil {
			t.Fatal(err)
		}
		if kept := got.Value == peerResult("openblas-sgemm", s, 1, 2); kept != (i == 1 || i == 3) {
			t.Errorf("program %d has its operands: %v", i, kept)
		}
	}
}

func TestMemory(t *testing.T) {
	const text = "MemTotal:       24689932 kB\nMemFree:          300 kB\nMemAvailable:   1024 kB\n"
	if got := parseMemory([]byte(text)); got != 1<<20 {
		t.Error(got)
	}
	if got := parseMemory([]byte("MemTotal: 1 kB\n")); got != 0 {
		t.Error(got)
	}
	// The operands alone: A, B and their copies in bfloat16 and reordered.
	if got := (Shape{M: 1024, N: 1024, K: 1024, Experts: 1}).peerBytes(); got < 40<<20 || got > 100<<20 {
		t.Error(got)
	}
	huge := Shape{M: mostExtent, N: mostExtent, K: mostExtent, Experts: 1}
	if err := enoughMemory([]Shape{{M: 1, N: 1, K: 1, Experts: 1}, huge}); freeMemory() > 0 && freeMemory() < huge.peerBytes() && !errors.Is(err, ErrMemory) {
		t.Error(err)
	}
	if err := enoughMemory([]Shape{{M: 1, N: 1, K: 1, Experts: 1}}); err != nil {
		t.Error(err)
	}
}
