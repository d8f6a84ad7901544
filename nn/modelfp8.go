package nn

import "github.com/octavo-fp8/octavo/tensor"

// useProducts gives the linear layers other products than those in FP32, if they
// shall have them.
func (m *Llama) useProducts() error {
	for _, l := range m.linears() {
		switch {
		case m.cfg.FP8 != nil:
			if err := l.useFP8(*m.cfg.FP8, &m.histories); err != nil {
				return err
			}
		case m.cfg.Rounding != nil:
			l.useRounding(*m.cfg.Rounding)
		}
	}
	return nil
}

func (m *Llama) linears() (all []*Linear) {
	for _, b := range m.blocks {
		all = append(all, b.linears()...)
	}
	return all
}

// Listen makes r hear of all linear layers, as [Linear.Listen] says; tensors are
// named like "model.layers.0.mlp.up_proj.input". With [ActivationsFP8SwiGLU] it also
// hears of what is kept of SwiGLU's inputs, such as "model.layers.0.mlp.up_proj.output",
// under the operation "swiglu".
func (m *Llama) Listen(r tensor.Reporter) {
	m.listener = r
	for _, l := range m.linears() {
		l.Listen(r)
	}
	for _, b := range m.blocks {
		b.mlp.cache.listen(r)
	}
}

// EndStep ends a training step for delayed scales: those of the linear layers
// and of Smooth-SwiGLU. Call it once after all of a step's batches. With
// just-in-time scales it does nothing.
func (m *Llama) EndStep() {
	m.histories.Update()
	for _, b := range m.blocks {
		b.mlp.smoother.Update()
	}
}

// DropStep ends a step that is not to count, such as one that was skipped: what
// delayed scales recorded since the last EndStep or DropStep is forgotten, so that
// an infinite amax does not stay in a history. With just-in-time scales it does
// nothing. Stochastic rounding does not use the numbers of its backward passes again.
func (m *Llama) DropStep() error {
	m.histories.DropStep()
	for _, b := range m.blocks {
		b.mlp.smoother.DropStep()
	}
	return nil
}
