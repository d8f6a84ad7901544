package checkpoint_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/safetensors"
)

// A model in BF16 becomes one in FP8 as DeepSeek-V3 has it, file by file.
func Example() {
	from, to := exampleModel(), exampleDirectory()
	defer os.RemoveAll(from)
	defer os.RemoveAll(to)

	source, err := checkpoint.Open(from)
	if err != nil {
		panic(err)
	}
	defer source.Close()
	layout, err := checkpoint.ParseLayout("deepseek-v3")
	if err != nil {
		panic(err)
	}
	plan, err := checkpoint.NewPlan(source, layout, checkpoint.PlanOptions{})
	if err != nil {
		panic(err)
	}
	for _, s := range plan.Shards {
		path := filepath.Join(to, s.Name)
		err := safetensors.WriteFileAtFunc(path, s.Infos(), checkpoint.Metadata(), func(w *safetensors.WriterAt) error {
			results, err := checkpoint.Write(context.Background(), s.Targets, w, checkpoint.Options{Errors: true})
			for _, r := range results {
				if r.Error != nil {
					fmt.Printf("%s: %d of %d values saturated\n", r.Name, r.Stats.Saturated(), r.Stats.Elements)
				}
			}
			return err
		})
		if err != nil {
			panic(err)
		}
	}
	for name, text := range plan.Documents() {
		if err := os.WriteFile(filepath.Join(to, name), text, 0o600); err != nil {
			panic(err)
		}
	}

	converted, err := checkpoint.Open(to)
	if err != nil {
		panic(err)
	}
	defer converted.Close()
	layouts, err := converted.Detect()
	fmt.Println(layouts[0], err)
	for _, e := range converted.Entries() {
		fmt.Println(e.Name, e.DType, e.Shape)
	}
	// Output:
	// up_proj.weight: 0 of 38400 values saturated
	// deepseek-v3 <nil>
	// lm_head.weight BF16 [8 160]
	// up_proj.weight F8_E4M3 [240 160]
	// up_proj.weight_scale_inv F32 [2 2]
}

func exampleDirectory() string {
	dir, err := os.MkdirTemp("", "octavo")
	if err != nil {
		panic(err)
	}
	return dir
}

func exampleModel() string {
	dir := exampleDirectory()
	err := safetensors.WriteFile(filepath.Join(dir, "model.safetensors"), []safetensors.Tensor{
		random("lm_head.weight", 1, 8, 160), random("up_proj.weight", 2, 240, 160),
	}, nil)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{}`), 0o600)
	}
	if err != nil {
		panic(err)
	}
	return dir
}
