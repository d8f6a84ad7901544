package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/nn"
)

// planned are members of the report.
type planned struct {
	Parameters struct{ Total int64 }
	Data       int
	Headroom   *float64
	Stages     []struct{ Weights, Gradients, Optimizer, Activations, Workspace, Cache int64 }
	Highest    int
	TooLarge   []int
	Nearest    []struct{ Flags string }
	Step       *struct{ Tokens int64 }
	Run        *struct{ MFU, Days float64 }
}

func planJSON(t *testing.T, args ...string) (p planned) {
	decodePlan(t, &p, &p.TooLarge, args...)
	return p
}

// decodePlan reads the report of plan, whose status is 1 if there are stages that are too large.
func decodePlan(t *testing.T, report any, tooLarge *[]int, args ...string) {
	t.Helper()
	r := octavo(nil, append(append([]string{"plan"}, args...), "--json")...)
	require.NoError(t, json.Unmarshal([]byte(r.stdout), report), r.stderr)
	require.Equal(t, len(*tooLarge) > 0, r.status == exitData)
	require.Equal(t, len(*tooLarge) > 0, r.stderr != "")
}

// TestPlan takes a case that was measured: 104.30 GiB on 8 B200.
func TestPlan(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cut-v3")
	require.NoError(t, os.Mkdir(dir, 0o777))
	config := filepath.Join(dir, "config.json")
	require.NoError(t, os.WriteFile(config, []byte(`{"model_type": "deepseek_v3", "num_hidden_layers": 4, "hidden_size": 7168,
		"vocab_size": 129280, "num_attention_heads": 128, "intermediate_size": 18432, "q_lora_rank": 1536, "kv_lora_rank": 512,
		"qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 256, "n_shared_experts": 1,
		"num_experts_per_tok": 8, "moe_intermediate_size": 2048, "first_k_dense_replace": 1}`), 0o666))
	p := planJSON(t, config, "--ranks", "8", "--ep", "8", "--card", "100")
	s := p.Stages[0]
	total := float64(s.Weights + s.Gradients + s.Optimizer + s.Activations + s.Workspace)
	require.InEpsilon(t, 104.30, total/(1<<30), 0.02)
	require.Equal(t, 8, p.Data)
	require.Equal(t, []int{0}, p.TooLarge)

	require.NotEmpty(t, p.Nearest)
	for _, w := range p.Nearest {
		fit := planJSON(t, append([]string{config, "--ranks", "8", "--ep", "8", "--card", "100"}, strings.Fields(w.Flags)...)...)
		require.Empty(t, fit.TooLarge, w.Flags)
	}

	r := octavo(nil, "plan", config, "--ranks", "8", "--ep", "8", "--card", "100")
	require.Equal(t, exitData, r.status)
	require.Contains(t, r.stdout, "0  0-7         4")
	require.Regexp(t, `^cut-v3 does not fit a card of 100 GiB: [0-9.]+ GiB are missing\. A rank`, r.stdout)
	require.Equal(t, "octavo: cut-v3 does not fit a card of 100 GiB\n", r.stderr)
	require.True(t, strings.HasPrefix(octavo(nil, "plan", dir, "--ranks", "8", "--ep", "8").stdout, "cut-v3 takes"))
	require.Contains(t, r.stdout, "8 ranks, 8 expert parallel, 8 data parallel, ZeRO-1.")
}

func TestPlanServing(t *testing.T) {
	p := planJSON(t, "llama-3-70b", "--serve", "--tp", "8", "--batch", "10", "--sequence", "1000")
	require.EqualValues(t, 10*1000*327_680/8, p.Stages[0].Cache)
	require.Zero(t, p.Stages[0].Optimizer)
	bf16 := p.Stages[0].Weights
	require.Contains(t, succeed(t, "plan", "gpt-oss-120b", "--serve", "--card", "80"), "Serves as published, by recipe mxfp4-experts: ")
	require.Contains(t, octavo(nil, "plan", "gpt-oss-120b", "--serve", "--card", "80", "--recipe", "bf16").stdout, "Serves by recipe bf16: ")
	require.Contains(t, succeed(t, "plan", "gpt-oss-120b"), "Trains by recipe bf16: ")
	fp8 := testutil.Shared(t, "golden", "checkpoints", "llama-deepseek-fp8")
	require.Regexp(t, `^llama-deepseek-fp8 takes (.|\n)*Serves as published, by recipe deepseek-v3: `, succeed(t, "plan", fp8, "--serve"))
	p = planJSON(t, "llama-3-70b", "--recipe", "nvfp4", "--serve", "--tp", "8")
	require.InEpsilon(t, float64(bf16)*4.5/16, float64(p.Stages[0].Weights), 0.1, "but for embedding and head")
	require.Contains(t, succeed(t, "plan", "kimi-k2", "--serve"), "Each token leaves 70,272 bytes")
}

func TestPlanTime(t *testing.T) {
	stated := planJSON(t, "deepseek-v3", "--ranks", "2048", "--tokens", "14.8e12", "--mfu", "0.4")
	require.InEpsilon(t, 14.8e12*2.505e11/(2048*989e12*0.4*86400), stated.Run.Days, 1e-3)
	days := planJSON(t, "deepseek-v3", "--ranks", "2048", "--tokens", "14.8e12", "--days", "52.96")
	require.InDelta(t, 0.4, days.Run.MFU, 1e-3)
	require.Contains(t, succeed(t, "plan", "llama-3-8b", "--tokens", "15e12", "--days", "1"), "which cannot be")
	quoted := succeed(t, "plan", "--quoted")
	require.Contains(t, quoted, "40.06%")
	require.Contains(t, quoted, "39.87%")
	require.Contains(t, succeed(t, "plan", "--measured"), "Llama 70B, 12       4096  pp2         66.55    66.44  -0.17%   66.44")
}

// TestPlanPolicies: policies that are searched fit the card, and cost no more than those that
// compute all again; what is kept is there by class.
func TestPlanPolicies(t *testing.T) {
	args := []string{"llama-3-8b", "--ranks", "8", "--card", "80"}
	policy := func(text string, more ...string) (s plannedClasses) {
		decodePlan(t, &s, &s.TooLarge, append(append([]string{"--policies", text}, args...), more...)...)
		return s
	}
	for headroom, options := range map[float64][]string{0.1: nil, 0: {"--headroom", "0"}, 0.03: {"--headroom", "0.03"}} {
		p := planJSON(t, append(append(slices.Clone(args), "--policies", "search"), options...)...)
		s := p.Stages[0]
		total := float64(s.Weights + s.Gradients + s.Optimizer + s.Activations + s.Workspace)
		require.LessOrEqual(t, total*(1+headroom), 80.0*(1<<30))
		require.Greater(t, total*(1+headroom), 79.0*(1<<30)) // and not much less
		require.Equal(t, headroom, *p.Headroom)
		require.Empty(t, p.TooLarge)
	}
	own, found, all := policy("keep all"), policy("search"), policy("recompute all")
	require.Equal(t, []int{0}, own.TooLarge)
	require.Empty(t, found.TooLarge)
	require.Zero(t, own.Stages[0].Again)
	require.Positive(t, found.Stages[0].Again)
	require.Less(t, found.Stages[0].Again, all.Stages[0].Again)
	require.Len(t, found.Training.Policies, 32)
	require.Equal(t, nn.Policy{}, own.Training.Policies[31])
	classes := func(p plannedClasses) map[string]int64 {
		of := map[string]int64{}
		for _, c := range p.Stages[0].Classes {
			of[c.Class] = c.Bytes
		}
		return of
	}
	const tokens = 4096
	kept := classes(own)
	require.EqualValues(t, 32*tokens*2*2*4096, kept["norms"])
	require.EqualValues(t, 32*tokens*2*14336, kept["product"])
	require.EqualValues(t, 32*tokens*2*32*4096, kept["probabilities"])
	require.NotContains(t, classes(all), "product")
	require.NotContains(t, classes(policy("recompute norms, product")), "norms")
	require.EqualValues(t, 32*(tokens*4096+4*tokens/128*4096), classes(policy("fp8 mixed", "--recipe", "octavo"))["mixed"])

	page := filepath.Join(t.TempDir(), "page.html")
	text := succeed(t, append([]string{"plan", "--policies", "search", "--html", page}, args...)...)
	require.Contains(t, text, "GiB kept of a micro-batch on a rank of stage 0, by class")
	require.Contains(t, text, "operations of a micro-batch are done again")
	require.NotContains(t, octavo(nil, append([]string{"plan"}, args...)...).stdout, "by class")
	content, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(content), "<h2>GiB kept of a micro-batch, by class</h2>")
	require.Contains(t, string(content), `<th class="number">again</th>`)
}

// plannedClasses are members of the report with --policies.
type plannedClasses struct {
	Training struct{ Policies []nn.Policy }
	Stages   []struct {
		Again   int64
		Classes []struct {
			Class string
			Bytes int64
		}
	}
	TooLarge []int
}

func TestPlanPage(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.html")
	succeed(t, "plan", "llama-3-70b", "--pp", "4", "--tp", "8", "--html", page)
	content, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(content), "octavo plan llama-3-70b --html")
	require.Contains(t, string(content), "What llama-3-70b takes")
}

func TestPlanErrors(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "config.json")
	require.NoError(t, os.WriteFile(config, []byte(`{"model_type": "bert"}`), 0o666))
	weights, packed := filepath.Join(dir, "model.safetensors"), filepath.Join(dir, "packed.json")
	require.NoError(t, os.WriteFile(weights, []byte("\x90\x00\x00\x00\x00\x00\x00\x00{}"), 0o666))
	require.NoError(t, os.WriteFile(packed, []byte(`{"model_type": "llama", "num_hidden_layers": 1, "hidden_size": 8, "vocab_size": 8,
		"num_attention_heads": 2, "intermediate_size": 8, "quantization_config": {"quant_method": "gptq"}}`), 0o666))
	require.Contains(t, succeed(t, "plan", packed, "--serve", "--recipe", "bf16"), "Serves by recipe bf16")
	for _, card := range []string{"80", "80GB", "80GiB", "80 GB"} {
		require.Contains(t, succeed(t, "plan", packed, "--card", card), "fits a card of 80 GiB")
	}
	for _, c := range []struct {
		status int
		want   string
		args   []string
	}{
		{2, "want one model, there are 0 arguments", nil},
		{2, `no model is called "llama-3-80b": want one of`, []string{"llama-3-80b"}},
		{2, "or a file: did you mean", []string{"llama-3-80b"}},
		{1, filepath.Join(dir, "absent.json") + ": there is no such file: want the config.json of a model, the directory that has one, or a known name, such as llama-3-8b", []string{filepath.Join(dir, "absent.json")}},
		{1, weights + " is no configuration: want the config.json of a model, or the directory that has one", []string{weights}},
		{2, "weights are published in gptq, which no recipe counts: say with --recipe in what they are served", []string{packed, "--serve"}},
		{2, "want the memory of a card in GiB, a positive number such as 80, and not its name", []string{"kimi-k2", "--card", "H100"}},
		{2, "want the memory of a card in GiB", []string{"kimi-k2", "--card", "-80GB"}},
		{2, "want a whole number from 1 to", []string{"kimi-k2", "--ranks", "0"}},
		{1, config + `: model_type is "bert": want one of`, []string{config}},
		{2, "--tp is 3: it does not divide the heads of 64", []string{"llama-3-70b", "--tp", "3"}},
		{2, "--ep is 512: the model has only 256 experts", []string{"deepseek-v3", "--ep", "512"}},
		{2, "--ranks is 12: want a multiple of tensor·context·pipeline = 8", []string{"llama-3-70b", "--ranks", "12", "--tp", "8"}},
		{2, "--pp is 16: 16 stages do not divide 61 layers", []string{"kimi-k2", "--pp", "16"}},
		{2, "--recompute: it does not go with --serve", []string{"kimi-k2", "--serve", "--recompute", "all"}},
		{2, "want a number of layers or all", []string{"kimi-k2", "--recompute", "some"}},
		{2, "give one of both", []string{"kimi-k2", "--mfu", "0.4", "--days", "3"}},
		{2, "say with --mfu how fast", []string{"kimi-k2", "--tokens", "1e12"}},
		{2, "want a number above 0 and below 1", []string{"kimi-k2", "--mfu", "1.5"}},
		{2, "--quoted takes no model", []string{"kimi-k2", "--quoted"}},
		{2, "--measured takes no model", []string{"kimi-k2", "--measured"}},
		{2, "--measured: it does not go with --quoted", []string{"--quoted", "--measured"}},
		{2, "--tp: it does not go with --measured", []string{"--measured", "--tp", "3"}},
		{2, `unknown class of activations "norm": want all, or some of norms`, []string{"kimi-k2", "--policies", "recompute norm"}},
		{2, "--policies: they are of --library octavo", []string{"kimi-k2", "--library", "te", "--policies", "keep all"}},
		{2, "--headroom: say with --card", []string{"kimi-k2", "--headroom", "0.1"}},
		{2, "want a share from 0 to 1", []string{"kimi-k2", "--card", "80", "--headroom", "3"}},
		{2, "--headroom: it does not go with --measured", []string{"--measured", "--headroom", "0"}},
		{2, "--policies: say with --card", []string{"kimi-k2", "--policies", "search"}},
		{2, "--recompute: with --library octavo --policies say", []string{"kimi-k2", "--library", "octavo", "--recompute", "all"}},
		{2, "--vpp is 2: policies are searched for stages of one chunk", []string{"llama-3-8b", "--pp", "2", "--vpp", "2", "--card", "80", "--policies", "search"}},
		{2, "--policies: it does not go with --serve", []string{"kimi-k2", "--serve", "--policies", "keep all"}},
		{2, "--policies with precision deepseek-v3: norms cannot be keep with activations deepseek-v3", []string{"kimi-k2", "--recipe", "deepseek-v3", "--policies", "keep norms"}},
		{2, "--recipe is nvfp4: it is for serving", []string{"llama-3-8b", "--recipe", "nvfp4"}},
		{1, "--card is 10 GiB: on a rank of stage 0 at least 65.61 GiB are reserved with a headroom of 10%, whatever the policies; nothing that fits was found on 8 ranks with other values of one or two of --tp and --pp; on the fewest that were found to fit: --ranks 16 --tp 8 --pp 2 (16 ranks", []string{"llama-3-8b", "--ranks", "8", "--card", "10", "--policies", "search"}},
	} {
		fail(t, c.status, c.want, append([]string{"plan"}, c.args...)...)
	}
	fail(t, 2, "", "plan", config, "--html", config)
}
