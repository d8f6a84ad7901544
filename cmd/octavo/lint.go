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
	show "github.com/octavo-fp8/octavo/cmd/internal/lint"
	"github.com/octavo-fp8/octavo/internal/jsonout"
)

func newLintCommand() *cobra.Command {
	o := lint.Options{TensorParallel: 1}
	var out lintOutput
	cmd := &cobra.Command{
		Use:     "lint DIR|INDEX.json|FILE.safetensors",
		Short:   "Find what is wrong with a checkpoint",
		Long:    helpOf("lint"),
		Example: examplesOf("lint"),
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
	var ids []string
	for _, r := range lint.Rules() {
		ids = append(ids, r.ID)
	}
	valueFlag(cmd, rules, "skip", "leave this rule out; may be repeated, or list several with commas", ids...)
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
