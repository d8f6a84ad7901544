package telemetry_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/telemetry"
	"github.com/octavo-fp8/octavo/tensor"
)

// quantize encodes values without scaling them and reports to rec.
func quantize(rec *telemetry.Recorder, name string, values ...float32) {
	t := tensor.Tensor{Name: name, Format: fp8.E4M3, Shape: []int{len(values)}}
	err := tensor.Quantize(context.Background(), &t, values, tensor.Quantizer{
		Scale:   func(int, float32, bool) fp8.Scale { return fp8.Scale{} },
		Options: tensor.Options{Reporter: rec},
	})
	if err != nil {
		log.Fatal(err)
	}
}

// alarm is a sink that says what was lost.
type alarm struct{}

func (alarm) Event(e telemetry.Event) error {
	if e.LostShare() > 0 {
		fmt.Printf("step %d, %s: %.0f%% saturated, %.0f%% flushed, %d not finite\n", e.Step, e.Tensor,
			100*e.SaturatedShare(), 100*e.FlushedShare(), e.Stats.NonFinite())
	}
	return nil
}

func Example() {
	rec := telemetry.New(alarm{})
	for step := range int64(3) {
		if err := rec.Step(step); err != nil {
			log.Fatal(err)
		}
		x := float32(20)
		for range step {
			x *= x
		}
		quantize(rec, "grad", x, 1, 1/x, 0)
		quantize(rec, "weight", 1, 2)
	}
	if err := rec.Flush(); err != nil {
		log.Fatal(err)
	}
	for _, total := range rec.Totals() {
		fmt.Printf("%s: %d events, amax %v\n", total.Tensor, total.Events, total.Stats.Amax)
	}
	// Output:
	// step 2, grad: 25% saturated, 25% flushed, 0 not finite
	// grad: 3 events, amax 160000
	// weight: 3 events, amax 2
}

func ExampleRecorder_Merge() {
	workers := []*telemetry.Recorder{telemetry.New(), telemetry.New()}
	quantize(workers[0], "grad", 1, 2, 3)
	quantize(workers[1], "grad", 4, 5, 1000)
	var all telemetry.Recorder
	for _, w := range workers {
		all.Merge(w)
	}
	for _, t := range all.Totals() {
		fmt.Println(t.Tensor, t.Stats.Elements, t.Stats.Amax, t.Stats.Saturated())
	}
	// Output: grad 6 1000 1
}

func ExampleJSONLines() {
	rec := telemetry.New(telemetry.JSONLines(os.Stdout))
	rec.Block("quantize", "grad", 0, 0, 0.5, &fp8.Stats{Elements: 128, Amax: 300, Smallest: 1})
	if err := rec.Flush(); err != nil {
		log.Fatal(err)
	}
	// Output: {"step":0,"tensor":"grad","op":"quantize","blocks":1,"scaleMin":0.5,"scaleMax":0.5,"stats":{"elements":128,"amax":300,"smallest":1,"saturatedPos":0,"saturatedNeg":0,"becameNonFinite":0,"flushed":0,"subnormal":0,"zeros":0,"nan":0,"posInf":0,"negInf":0},"worst":{"step":0,"row":0,"col":0,"scale":0.5,"stats":{"elements":128,"amax":300,"smallest":1,"saturatedPos":0,"saturatedNeg":0,"becameNonFinite":0,"flushed":0,"subnormal":0,"zeros":0,"nan":0,"posInf":0,"negInf":0}}}
}

func ExampleReadJSONLines() {
	var file strings.Builder
	rec := telemetry.New(telemetry.JSONLines(&file))
	quantize(rec, "grad", 1, 2)
	_ = rec.Step(1)
	quantize(rec, "grad", 1, 1000)
	_ = rec.Flush()

	for e, err := range telemetry.ReadJSONLines(strings.NewReader(file.String())) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.Step, e.Tensor, e.SaturatedShare())
	}
	// Output:
	// 0 grad 0
	// 1 grad 0.5
}
