package comparison

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/text"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/swiglu"
	"github.com/octavo-fp8/octavo/telemetry"
)

func options(steps int) Options {
	return Options{
		Steps: steps, Batch: 4, Context: 32, Dim: 32, Layers: 2, Heads: 2, Hidden: 48,
		LearningRate: 5e-3, Seed: 1, Profile: scaling.TEBlockPow2, TelemetryEvery: 3,
	}
}

// named returns options with a recipe that has a name.
func named(recipe string, without ...nn.Part) Options {
	o := options(6)
	o.Recipe, o.Without = recipe, without
	return o
}

func rhyme() text.Text {
	return text.New("a rhyme", []byte(strings.Repeat("one two, buckle my shoe; three four, knock at the door; ", 100)))
}

func quiet(Point) {}

func TestBothLearnAndFP8Follows(t *testing.T) {
	steps, below := 60, 0.7
	if testing.Short() {
		steps, below = 15, 0.9
	}
	r, err := Run(context.Background(), options(steps), rhyme(), Checkpoints{}, quiet)
	require.NoError(t, err)
	require.Len(t, r.Points, steps)
	require.Less(t, r.FP32.HeldOut, below*r.Points[0].FP32.Loss)
	require.NotEqual(t, r.FP32.Loss, r.FP8.Loss)
	require.InEpsilon(t, r.FP32.HeldOut, r.FP8.HeldOut, 0.05)
	require.Nil(t, r.NonFinite)
	layers := r.Layers()
	require.Len(t, layers, 14)
	require.Equal(t, "0.attn.k", layers[0].Name)
	for _, l := range layers {
		require.Positive(t, l.Input.Stats.Amax, l.Name)
		require.Positive(t, l.Weight.Stats.Amax, l.Name)
		require.Positive(t, l.Gradient.Stats.Amax, l.Name)
	}
}

// TestSameBitsTwice: a run depends on its options and text alone.
func TestSameBitsTwice(t *testing.T) {
	for _, o := range []Options{options(6), func() Options {
		o := options(6)
		o.Profile, o.GradientFormat, o.Smoothing = scaling.TEDelayed, fp8.E5M2, &swiglu.Smoothing{}
		return o
	}(), named("nvfp4"), named("mxfp4", nn.PartBF16Last)} {
		a, err := Run(context.Background(), o, rhyme(), Checkpoints{}, quiet)
		require.NoError(t, err)
		o.Workers = 3
		b, err := Run(context.Background(), o, rhyme(), Checkpoints{}, quiet)
		require.NoError(t, err)
		require.Equal(t, a.Points, b.Points)
		require.Equal(t, a.Totals, b.Totals)
	}
}

// TestModels: what is of the FP8 model alone is not of the other.
func TestModels(t *testing.T) {
	o := everything(1)
	o.Seed = 7
	r := newTestRunner(t, o)
	fp32, fp8 := r.fp32.Model.Config(), r.fp8.Model.Config()
	require.True(t, fp8.FP8.Stochastic)
	require.EqualValues(t, 7, fp8.FP8.Seed)
	require.Equal(t, o.Activations, fp8.Activations)
	require.Equal(t, o.Smoothing, fp8.Smoothing)
	require.Equal(t, o.Moments, r.fp8.Optimizer.Moments.Format)
	fp8.FP8, fp8.Activations, fp8.Smoothing = nil, nn.ActivationsFP32, nil
	require.Equal(t, fp32, fp8)
	require.Zero(t, r.fp32.Optimizer.Moments)
}

// TestNamedRecipes: a recipe is what package nn says, and described where a run is.
func TestNamedRecipes(t *testing.T) {
	o := named("nvfp4", nn.PartHadamard, nn.PartBF16Last)
	o.Seed = 5
	_, config := o.models()
	r, err := nn.ParseRecipe("nvfp4")
	require.NoError(t, err)
	want := nn.Config{Layers: 2}
	r.Without(o.Without...).Apply(&want, 5)
	require.Equal(t, want.FP8, config.FP8)
	require.Zero(t, config.BF16Last)
	require.Equal(t, "nvfp4 without hadamard without bf16-last, moments fp32, activations fp32", o.recipe())
	var line []string
	for _, f := range o.Flags() {
		line = append(line, f.String())
	}
	require.Contains(t, strings.Join(line, " "), "--seed 5 --recipe nvfp4 --without hadamard,bf16-last --smooth none")
	require.NotContains(t, strings.Join(line, " "), "--profile")

	o = named("deepseek-v3").Complete()
	require.Equal(t, "deepseek-v3, moments bf16, activations deepseek-v3", o.recipe())
	_, config = o.models()
	require.Equal(t, nn.ActivationsDeepSeekV3, config.Activations)
	o = named("deepseek-v3", nn.PartBF16Moments, nn.PartRequantized)
	o.Activations = nn.ActivationsFP8
	require.Equal(t, o, o.Complete(), "the recipe does not say")

	o = named("nvfp4", nn.PartHadamard, nn.PartBF16Last)
	require.NoError(t, o.CheckRecipe())
	require.NoError(t, options(1).CheckRecipe())
	for says, o := range map[string]Options{
		"unknown recipe \"fp3\"":                           named("fp3"),
		"recipe mxfp8 has no such part: it has none":       named("mxfp8", nn.PartHadamard),
		"it has hadamard,stochastic,bf16-last":             named("mxfp4", nn.PartSquareWeights),
		"--without leaves parts out of a recipe: name one": named("", nn.PartHadamard),
	} {
		require.ErrorContains(t, o.CheckRecipe(), says)
	}
}

func TestStopsBetweenSteps(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	r, err := Run(ctx, options(50), rhyme(), Checkpoints{}, func(p Point) {
		if p.Step == 4 {
			cancel()
		}
	})
	require.NoError(t, err)
	require.Len(t, r.Points, 5)
	require.Positive(t, r.FP8.HeldOut, "judged once more")

	stopped, cancel := context.WithCancel(context.Background())
	cancel()
	r, err = Run(stopped, options(5), rhyme(), Checkpoints{}, quiet)
	require.NoError(t, err)
	require.Empty(t, r.Points)
}

func TestShortText(t *testing.T) {
	_, err := Run(context.Background(), options(5), text.New("a word", []byte("word")), Checkpoints{}, quiet)
	require.ErrorContains(t, err, "a word has 4 bytes, which is too short for 8 held-out batches of 4 x 32: name a longer one with --text")
}

// TestOutputs reads back what a run writes.
func TestOutputs(t *testing.T) {
	o := options(10)
	o.Smoothing = &swiglu.Smoothing{Axis: swiglu.PerToken}
	r, err := Run(context.Background(), o, rhyme(), Checkpoints{}, quiet)
	require.NoError(t, err)

	curves := readCSV(t, r.WriteCurves)
	require.Len(t, curves, 1+10)
	require.Equal(t, number(r.Points[9].FP8.Loss), curves[10][3])
	require.NotEmpty(t, curves[10][7])
	kept := readCSV(t, r.WriteTelemetry)
	require.Len(t, kept, 1+4*14*6, "steps 0, 3, 6, 9 of 14 layers of 6 operands")
	require.Contains(t, kept[0], "became_nonfinite")

	var text bytes.Buffer
	require.NoError(t, r.WriteTable(&text))
	for _, want := range []string{"a rhyme", "te-block-pow2, gradients E4M3, Smooth-SwiGLU per token, moments fp32,\nactivations fp32\n", "held-out loss", "1.mlp.down", "Healthy: in none of 10"} {
		require.Contains(t, text.String(), want)
	}

	wide := terminal{columns: 80}
	require.NoError(t, r.WriteTable(&wide))
	require.Equal(t, 1, strings.Count(wide.String(), "FP8 layer"), "all of its columns are side by side")

	var object bytes.Buffer
	require.NoError(t, r.WriteJSON(&object))
	var got map[string]any
	require.NoError(t, json.Unmarshal(object.Bytes(), &got))
	require.EqualValues(t, 10, got["stepsDone"])
	require.Equal(t, "E4M3", got["options"].(map[string]any)["gradientFormat"])
	require.Len(t, got["layers"], 14)

	var page bytes.Buffer
	require.NoError(t, r.WritePage(&page, "octavo train --steps 10", "a machine"))
	require.Equal(t, 3, strings.Count(page.String(), "<svg"))
	for _, svg := range strings.Split(page.String(), "<svg")[1:] {
		element, _, ok := strings.Cut("<svg"+svg, "</svg>")
		require.True(t, ok)
		requireXML(t, element+"</svg>")
	}
}

// TestNonFiniteOutputs: a run that met what is not finite says so everywhere.
func TestNonFiniteOutputs(t *testing.T) {
	o := options(1)
	r, err := Run(context.Background(), o, rhyme(), Checkpoints{}, quiet)
	require.NoError(t, err)
	r.FP8.Loss = math.NaN()
	r.Totals[0].Stats.BecameNonFinite = 5
	r.Events[0].Stats.BecameNonFinite = 5
	r.NonFinite = &telemetry.NonFinite{Step: 1, Tensor: "x", Op: "y", Index: 2, Value: math.Inf(-1)}

	kept := readCSV(t, r.WriteTelemetry)
	require.Equal(t, "5", kept[1][slices.Index(kept[0], "became_nonfinite")])
	for _, write := range []func(io.Writer) error{
		r.WriteTable, func(w io.Writer) error { return r.WritePage(w, "", "") },
	} {
		var text bytes.Buffer
		require.NoError(t, write(&text))
		require.Contains(t, text.String(), "5 finite values became NaN or infinite in FP8.")
		require.Contains(t, text.String(), "First non-finite value: -Inf")
		require.NotContains(t, text.String(), "Healthy")
	}
	var object bytes.Buffer
	require.NoError(t, r.WriteJSON(&object))
	for _, want := range []string{`"finalLoss": "NaN"`, `"gapPercent": "NaN"`, `"becameNonFinite": 5`, `"value": "-Inf"`} {
		require.Contains(t, object.String(), want)
	}
	require.NotRegexp(t, `"[^"]*_[^"]*":|null`, object.String())
}

func readCSV(t *testing.T, write func(io.Writer) error) [][]string {
	var b bytes.Buffer
	require.NoError(t, write(&b))
	rows, err := csv.NewReader(&b).ReadAll()
	require.NoError(t, err)
	return rows
}

func requireXML(t *testing.T, text string) {
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		_, err := d.Token()
		if err == io.EOF {
			return
		}
		require.NoError(t, err)
	}
}

func TestLayersAreInNaturalOrder(t *testing.T) {
	require.True(t, natural("2.mlp.up", "10.attn.k"))
	require.True(t, natural("2.attn.k", "2.mlp.up"))
	require.False(t, natural("10.mlp.up", "2.mlp.up"))
}
