package comparison

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/nn"
)

func mustParseBudget(t *testing.T, text string) Budget {
	t.Helper()
	b, err := ParseBudget(text)
	require.NoError(t, err)
	require.Equal(t, text, b.String())
	return b
}

func TestParseBudget(t *testing.T) {
	for text, want := range map[string]int64{
		"30%": 300, "100%": 1000, "0.5%": 5, "7": 7, "1.5KiB": 1536, "64MiB": 64 << 20, "2GiB": 2 << 30,
	} {
		require.Equal(t, want, mustParseBudget(t, text).of(1000), text)
	}
	for _, text := range []string{"", "%", "0", "0%", "101%", "-1", "NaN", "NaN%", "1e30GiB", "1TiB", "x"} {
		_, err := ParseBudget(text)
		require.ErrorContains(t, err, "want a share", text)
	}
}

// TestBudgetKeepsBits: a run under a budget is the same, says what is kept, and remembers the
// budget for a run that goes on.
func TestBudgetKeepsBits(t *testing.T) {
	for _, o := range []Options{everything(4), named("nvfp4"), named("deepseek-v3"), {}} {
		if o.Steps == 0 {
			o = options(4)
			o.MoE = true
		}
		o.Steps = 4
		want, err := Run(t.Context(), o, rhyme(), Checkpoints{}, quiet)
		require.NoError(t, err)
		require.Empty(t, want.Activations)
		o.Budget = mustParseBudget(t, "80%")
		checkpoints := Checkpoints{Dir: t.TempDir(), Every: 2}
		got, err := Run(t.Context(), o, rhyme(), checkpoints, quiet)
		require.NoError(t, err)
		require.Equal(t, want.Points, got.Points)
		require.Equal(t, want.Totals, got.Totals)
		require.Len(t, got.Activations, 2)
		for i, m := range []*nn.Llama{got.ModelFP32, got.ModelFP8} {
			a := got.Activations[i]
			require.Equal(t, m.Config().Policies, a.Policies)
			require.LessOrEqual(t, float64(a.Bytes), 0.8*float64(a.All))
			require.EqualValues(t, m.ActivationBytes().Float32, a.Float32)
		}
		var table, page bytes.Buffer
		require.NoError(t, got.WriteTable(&table))
		require.Contains(t, table.String(), "\nFP32 activations take ")
		require.NoError(t, got.WritePage(&page, "octavo train", "a machine"))
		require.Contains(t, page.String(), "<p>FP32 activations take ")
		var text bytes.Buffer
		require.NoError(t, got.WriteJSON(&text))
		var read struct {
			Options     struct{ ActivationBudget string }
			Activations []struct {
				Model      string
				Bytes, All int64
				Policies   []nn.Policy
			}
		}
		require.NoError(t, json.Unmarshal(text.Bytes(), &read))
		require.Equal(t, "80%", read.Options.ActivationBudget)
		require.Equal(t, got.Activations[1].Policies, read.Activations[1].Policies)
		flags, err := SavedFlags(checkpoints.Dir)
		require.NoError(t, err)
		require.Contains(t, flags, Flag{"activation-budget", "80%"})

		o.Budget, checkpoints.Resume = Budget{}, true
		again, err := Run(t.Context(), o, rhyme(), checkpoints, quiet)
		require.NoError(t, err, "another budget is no other run")
		require.Equal(t, want.Points, again.Points)
	}
}

func TestBudgetOutOfReach(t *testing.T) {
	o := options(4)
	o.Budget = mustParseBudget(t, "1KiB")
	_, err := Run(t.Context(), o, rhyme(), Checkpoints{}, quiet)
	require.Regexp(t, `^--activation-budget 1KiB is 1024 bytes: activations of the FP32 model take at least \d+, \d+\.\d % of the \d+ that all of them take$`, err.Error())
}
