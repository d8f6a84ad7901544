package nn

// featuredModel is a configuration with features of a family, small.
type featuredModel struct {
	name   string
	config Config
}

// featured returns models that have every feature between them.
func featured() []featuredModel {
	base := Config{Vocab: 13, Dim: 12, Layers: 2, Heads: 4, KVHeads: 2, Hidden: 10, Context: 12, NormEps: 1e-4}
	with := func(name string, change func(c *Config)) featuredModel {
		c := base
		change(&c)
		if c.Experts != nil && c.Experts.Router.Scale == 0 { // as a saved one
			c.Experts.Router = c.Experts.Router.withDefaults()
		}
		return featuredModel{name, c}
	}
	return []featuredModel{
		with("head dim and partial rotation", func(c *Config) { c.HeadDim, c.RotaryDim = 6, 4 }),
		with("windows and two bases", func(c *Config) {
			c.Windows, c.RopeTheta, c.WindowRopeTheta = []int{3, 0}, 1e5, 100
			c.RopeScaling = RopeScaling{Factor: 2}
			c.HeadDim = 4
		}),
		with("gemma", func(c *Config) {
			c.HeadDim, c.Windows, c.WindowRopeTheta = 6, []int{3, 0}, 50
			c.Norms = Norms{PlusOne: true, After: true, QueryKey: true}
			c.EmbeddingScale, c.ScoreScale, c.ScoreCap, c.LogitCap = 3.5, 0.3, 2, 1.5
			c.Gate.Activation, c.TieHead = GateGELUTanh, true
		}),
		with("gpt-oss", func(c *Config) {
			c.HeadDim, c.Windows, c.Sinks = 6, []int{3, 0}, true
			c.Biases = Biases{QueryKeyValue: true, Output: true, MLP: true, Router: true}
			c.Gate = Gate{GateClamped, 1.702, 0.4}
			c.RopeScaling = RopeScaling{Factor: 4, Original: 6, Low: 1, High: 32, YaRN: true, Untruncated: true, Attention: 1.2}
			c.Experts = &ExpertsConfig{Hidden: 7, Shared: 1, Router: RouterConfig{Experts: 4, TopK: 2, Score: ScoreSoftmax}}
		}),
		with("long rope and GELU", func(c *Config) {
			c.HeadDim, c.Gate.Activation, c.Norms.QueryKey = 4, GateGELU, true
			c.Biases.QueryKeyValue = true
			c.RopeScaling = RopeScaling{Original: 4, Short: []float64{1, 2}, Long: []float64{3, 40}, Attention: 1.1}
		}),
		with("latent attention", func(c *Config) {
			c.KVHeads, c.MLA = 0, &MLAConfig{QueryRank: 5, KVRank: 6, NoPE: 3, RoPE: 2, Value: 5}
			c.Biases, c.Norms = Biases{QueryKeyValue: true, Output: true}, Norms{After: true}
			c.ScoreScale, c.Sinks, c.ScoreCap, c.Windows = 0.7, true, 3, []int{0, 4}
			c.Layers, c.DenseLayers, c.Windows = 3, []int{1}, []int{0, 4, 0}
			c.RopeScaling = RopeScaling{Factor: 4, Original: 6, Low: 1, High: 32, YaRN: true, Attention: 1.2}
			c.Experts = &ExpertsConfig{Hidden: 7, Router: RouterConfig{Experts: 6, TopK: 2, Groups: 2, TopGroups: 1, GroupScores: 2}}
		}),
	}
}
