package comparison

import (
	"io"
	"strconv"

	"github.com/octavo-fp8/octavo/internal/promtext"
	"github.com/octavo-fp8/octavo/internal/telemetrytext"
	"github.com/octavo-fp8/octavo/telemetry"
)

// WriteMetrics writes where the run ended as text for Prometheus, as the node exporter's
// textfile collector reads it: without times, those of the file are taken. Behind the
// figures of the run comes what happened to each operand of FP8's linear layers.
func (r *Result) WriteMetrics(w io.Writer) error {
	if err := promtext.Write(w, r.metrics()...); err != nil {
		return err
	}
	return telemetrytext.Write(w, r.snapshot())
}

// snapshot is what a recorder of the whole run would hold.
func (r *Result) snapshot() telemetry.Snapshot {
	s := telemetry.Snapshot{Step: int64(r.last().Step)}
	for _, t := range r.Totals {
		s.Totals = append(s.Totals, telemetry.Total{Summary: t})
	}
	if r.NonFinite != nil {
		s.First = *r.NonFinite
	}
	return s
}

func (r *Result) last() Point { return r.Points[len(r.Points)-1] }

// metrics returns the figures of the run.
func (r *Result) metrics() []promtext.Family {
	last := r.last()
	families := []promtext.Family{
		single("octavo_train_steps", "Steps that were asked for.", float64(r.Options.Steps)),
		single("octavo_train_steps_done", "Steps that were done.", float64(len(r.Points))),
		single("octavo_train_parameters", "Values that each model trains.", float64(r.Params)),
		single("octavo_train_learning_rate", "Learning rate of the last step.", last.LearningRate),
		ofBoth("octavo_train_loss_nats_per_byte", "Training loss of the last step.", last.FP32.Loss, last.FP8.Loss),
		ofBoth("octavo_train_mean_loss_nats_per_byte", "Mean training loss of the last tenth of the steps.", r.FP32.Loss, r.FP8.Loss),
		ofBoth("octavo_train_gradient_norm", "Norm of the gradient in the last step, before clipping.", last.FP32.GradientNorm, last.FP8.GradientNorm),
	}
	families = append(families, r.healthFamily())
	if r.FP32.HeldOut != 0 { // the models were judged
		families = append(families, ofBoth("octavo_train_held_out_loss_nats_per_byte", "Loss on the held-out text after the last step.", r.FP32.HeldOut, r.FP8.HeldOut))
	}
	if len(r.LoadsFP8) > 0 {
		families = append(families, r.expertTokens())
	}
	return append(families,
		counted(ofBoth("octavo_train_step_seconds_total", "Time spent in steps.", r.FP32.Time.Seconds(), r.FP8.Time.Seconds())),
		counted(ofBoth("octavo_train_skipped_steps_total", "Steps skipped because a gradient was not finite.", r.skipped("FP32"), r.skipped("FP8"))),
		counted(ofBoth("octavo_train_spikes_total", "Losses and gradient norms far above the median of those before.", r.spiked("FP32"), r.spiked("FP8"))),
	)
}

// expertTokens has a sample for each expert of each model.
func (r *Result) expertTokens() promtext.Family {
	f := promtext.Family{
		Name: "octavo_train_expert_tokens_total", Type: promtext.Counter,
		Help: "Tokens that came to an expert in all steps.",
	}
	for _, of := range []struct {
		model string
		loads []Load
	}{{fp32Model, r.LoadsFP32}, {fp8Model, r.LoadsFP8}} {
		for _, l := range of.loads {
			for n, tokens := range l.Tokens {
				f.Add(float64(tokens), promtext.Label{Name: "model", Value: of.model},
					promtext.Label{Name: "layer", Value: strconv.Itoa(l.Layer)},
					promtext.Label{Name: "expert", Value: strconv.Itoa(n)})
			}
		}
	}
	return f
}

// healthFamily has a sample for each verdict, of which one is 1.
func (r *Result) healthFamily() promtext.Family {
	f := promtext.Family{Name: "octavo_train_health", Type: promtext.Gauge, Help: "1 for the verdict on the operands of all steps, 0 for the others."}
	is := r.Diagnosis().Verdict
	for _, verdict := range Diagnoses {
		value := 0.0
		if verdict == is {
			value = 1
		}
		f.Add(value, promtext.Label{Name: "verdict", Value: verdict})
	}
	return f
}

func single(name, help string, value float64) promtext.Family {
	f := promtext.Family{Name: name, Help: help, Type: promtext.Gauge}
	f.Add(value)
	return f
}

// ofBoth has a sample for each model.
func ofBoth(name, help string, fp32, fp8 float64) promtext.Family {
	f := promtext.Family{Name: name, Help: help, Type: promtext.Gauge}
	f.Add(fp32, promtext.Label{Name: "model", Value: "FP32"})
	f.Add(fp8, promtext.Label{Name: "model", Value: "FP8"})
	return f
}

func counted(f promtext.Family) promtext.Family {
	f.Type = promtext.Counter
	return f
}

// skipped counts the steps that a model skipped.
func (r *Result) skipped(model string) (n float64) {
	for _, s := range r.Skips {
		if s.Model == model {
			n++
		}
	}
	return n
}

// spiked counts the spikes of a model.
func (r *Result) spiked(model string) (n float64) {
	for _, s := range r.Spikes {
		if s.Model == model {
			n++
		}
	}
	return n
}
