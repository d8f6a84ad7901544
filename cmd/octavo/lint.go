package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/checkpoint/lint"
	"github.com/octavo-fp8/octavo/cmd/internal/display"
	"github.com/octavo-fp8/octavo/cmd/internal/jsonout"
	show "github.com/octavo-fp8/octavo/cmd/internal/lint"
)

const lintLong = `Lint finds what is wrong with a checkpoint before a loader does: an index that
lies, shards of two versions, scales that are absent, misnamed, of the wrong
shape, NaN, zero or reciprocal, modules that the configuration forgets, codes
that no quantizer writes, and more. --rules lists all that it looks for, with
reports of models that had it.

The argument is a directory (its index counts if it has one), an index or one
file. A part of a model without config.json is judged by what is in it.

Each finding has the tensors, what is wrong with them, its consequence, the fix,
and the loaders that it concerns. Its severity is one of

  E  error    wrong numbers, or loading fails
  W  warning  accuracy or portability is at risk
  I  info     to be tidied up

The exit status is 1 if there is an error or a warning, so that a check before
publishing fails. --fail-on error lets warnings pass, --fail-on info lets
nothing pass, and --fail-on none fails only if there is nothing to check. --skip
leaves out a rule whose findings are intended.

Quantization methods that octavo does not read, such as GPTQ, AWQ and
bitsandbytes, are named as not judged, with the number of their tensors. For the
exit status that is a warning.

Lint reads scales and codes of 8 bits once, on all processors, and codes of 4
bits only where scales are zero. --headers reads no data: it takes seconds for
any model and leaves out the rules that --rules marks with a star.

--tensor-parallel N checks that no block is cut where loaders split weights over
N devices.

With --json everything is one object, with all findings, or with --rules all
rules. notJudged has method, declared, contradicted and tensors.`

const lintExample = `  octavo lint model/
  octavo lint model/ --headers --fail-on error
  octavo lint model/ --tensor-parallel 8 --skip total-size
  octavo lint model/ --json | jq '.findings[] | {rule, tensors}'`

func newLintCommand() *cobra.Command {
	o := lint.Options{TensorParallel: 1}
	var out lintOutput
	cmd := &cobra.Command{
		Use:     "lint DIR|INDEX.json|FILE.safetensors",
		Short:   "Find what is wrong with a checkpoint",
		Long:    lintLong,
		Example: lintExample,
		Args: func(_ *cobra.Command, args []string) error {
			if !out.rules && len(args) != 1 {
				return fmt.Errorf("want one checkpoint, a directory or a file, and have %d", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if out.rules {
				return writeRules(soleOutputOf(cmd), out.asJSON)
			}
			return runLint(cmd, args[0], o, out)
		},
	}
	cmd.Flags().BoolVar(&o.Headers, "headers", false, "read headers and configurations alone, no data")
	rules := listOf[string]{&o.Skip, "RULE", parseRule, func(id string) string { return id }}
	cmd.Flags().Var(rules, "skip", "leave this rule out; may be repeated, or list several with commas")
	wholeFlag(cmd, &o.TensorParallel, 1, 1<<20, "tensor-parallel", "number of devices that weights are split over")
	choiceFlag(cmd, &out.failOn, "fail-on", "severity from which on the exit status is 1",
		choice[lint.Severity]{"warning", lint.Warning}, choice[lint.Severity]{"error", lint.Error},
		choice[lint.Severity]{"info", lint.Info}, choice[lint.Severity]{"none", lint.Error + 1})
	cmd.Flags().BoolVar(&out.all, "all", false, "print all findings of a rule, not the first few")
	cmd.Flags().BoolVar(&out.rules, "rules", false, "list the rules and do nothing else")
	jsonFlag(cmd, &out.asJSON)
	return cmd
}

func parseRule(id string) (string, error) {
	if !lint.Known(id) {
		return "", fmt.Errorf("there is no rule %q: octavo lint --rules lists them", id)
	}
	return id, nil
}

// lintOutput says what to do with findings.
type lintOutput struct {
	failOn             lint.Severity
	all, rules, asJSON bool
}

// writeRules writes the table of rules.
func writeRules(w io.Writer, asJSON bool) error {
	if !asJSON {
		return show.WriteRules(w)
	}
	return jsonout.Print(w, map[string]any{"rules": lint.Rules()})
}

func runLint(cmd *cobra.Command, path string, o lint.Options, out lintOutput) error {
	r, err := work(cmd, "nothing was printed", func(ctx context.Context, d *display.Display) (*lint.Report, error) {
		d.Unit(display.Bytes)
		o.Progress = d
		return lint.Check(ctx, path, o)
	})
	if err != nil {
		return err
	}
	if err := printResult(cmd, out.asJSON, r, func(w io.Writer) error { return show.WriteText(w, r, out.all) }); err != nil {
		return err
	}
	unjudged := checkpoint.UnreadTensors(r.NotJudged) > 0 && out.failOn <= lint.Warning
	for s := out.failOn; s <= lint.Error; s++ {
		if r.Count(s) > 0 || unjudged {
			return errors.New(path + ": " + show.Verdict(r))
		}
	}
	return nil
}
