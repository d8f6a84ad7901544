// Amax trains nothing, but exchanges what data-parallel training with delayed scaling
// must: four worker processes quantize their own shares of a batch, tell the main
// process the largest magnitudes (amax) of a step, and get back those of all. So they
// choose the same scales, and only current maxima travel, not histories.
//
// The messages are lines of JSON over the standard input and output of the workers; in
// place of pipes they may go over whatever connects your machines.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"

	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

const (
	workers = 4
	steps   = 20
	rows    = 8 // of a worker's share
	cols    = 64
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == "worker" {
		number, err := strconv.Atoi(os.Args[2])
		if err == nil {
			err = work(number, os.Stdin, os.Stdout)
		}
		if err != nil {
			log.Fatalf("worker %s: %v", os.Args[2], err)
		}
		return
	}
	if err := lead(os.Stdout, startProcess); err != nil {
		log.Fatal(err)
	}
}

// lead starts the workers, merges what they say in every step, and compares the states
// that they end with.
func lead(out io.Writer, start func(number int) (*worker, error)) error {
	var all []*worker
	defer func() {
		for _, w := range all {
			w.stop()
		}
	}()
	for number := range workers {
		w, err := start(number)
		if err != nil {
			return err
		}
		all = append(all, w)
	}

	bytesSent := 0
	for range steps {
		amaxes := make([]scaling.Amaxes, len(all))
		for i, w := range all {
			line, err := w.receive(&amaxes[i])
			if err != nil {
				return err
			}
			bytesSent += len(line)
		}
		merged, err := scaling.MergeAmaxes(amaxes...)
		if err != nil {
			return err
		}
		for _, w := range all {
			if err := w.in.Encode(merged); err != nil {
				return err
			}
		}
	}

	var first []byte
	for i, w := range all {
		var state scaling.State
		line, err := w.receive(&state)
		switch {
		case err != nil:
			return err
		case i == 0:
			first = line
		case !bytes.Equal(line, first):
			return fmt.Errorf("worker %d ended with other histories than worker 0", i)
		}
	}
	fmt.Fprintf(out, "%d processes have the same histories after %d steps\n", workers, steps)
	fmt.Fprintf(out, "a worker sent %d bytes a step; the histories are %d\n", bytesSent/workers/steps, len(first))
	return nil
}

// worker is how to talk with a worker.
type worker struct {
	in   *json.Encoder
	out  *json.Decoder
	stop func()
}

func startProcess(number int) (*worker, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command := exec.Command(program, "worker", strconv.Itoa(number))
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	stop := func() { // a worker that is not done fails when its input ends
		in.Close()
		command.Wait()
	}
	return &worker{json.NewEncoder(in), json.NewDecoder(out), stop}, command.Start()
}

// receive reads the next message into v and returns it as it came.
func (w *worker) receive(v any) ([]byte, error) {
	var line json.RawMessage
	if err := w.out.Decode(&line); err != nil {
		return nil, err
	}
	return line, json.Unmarshal(line, v)
}

// work quantizes one share of each step's tensors.
func work(number int, in io.Reader, out io.Writer) error {
	from, to := json.NewDecoder(in), json.NewEncoder(out)
	recipe := scaling.Recipe{Profile: scaling.TEDelayed}
	var histories scaling.Histories
	for step := range steps {
		for name, size := range map[string]float64{"layer.0.input": 1, "layer.1.input": 100} {
			history, err := histories.Get(name, recipe)
			if err != nil {
				return err
			}
			x := &tensor.Tensor{Name: name, Shape: []int{rows, cols}}
			values := share(number, step, size)
			if err := scaling.Quantize(context.Background(), x, values, scaling.Quantizer{Recipe: recipe, History: history}); err != nil {
				return err
			}
		}
		if err := to.Encode(histories.Amaxes()); err != nil {
			return err
		}
		var merged scaling.Amaxes
		if err := from.Decode(&merged); err != nil {
			return err
		}
		if err := histories.SetAmaxes(merged); err != nil {
			return err
		}
		histories.Update() // the step ends: from here on its maxima count
	}
	return to.Encode(histories.State())
}

// share is a worker's part of a tensor in a step. Magnitudes differ from worker to
// worker, and grow.
func share(number, step int, size float64) []float32 {
	r := rand.New(rand.NewPCG(uint64(number), uint64(step)))
	values := make([]float32, rows*cols)
	for i := range values {
		values[i] = float32(r.NormFloat64() * size * math.Ldexp(1, step/4) / float64(number+1))
	}
	return values
}
