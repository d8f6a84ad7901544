package comparison

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/octavo-fp8/octavo/internal/inputfile"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/train"
)

// ruleFile is a [train.Rule] in a file: of rules, in TOML, or of a checkpoint, in JSON.
type ruleFile struct {
	Series    train.Series `toml:"series" json:"series"`
	Tensor    string       `toml:"tensor" json:"tensor,omitempty"`
	Op        string       `toml:"op" json:"op,omitempty"`
	Window    int          `toml:"window" json:"window,omitempty"`
	Least     int          `toml:"least" json:"least,omitempty"`
	Threshold float64      `toml:"threshold" json:"threshold,omitempty"`
	AtLeast   float64      `toml:"at-least" json:"at_least,omitempty"`
	Steps     int          `toml:"steps" json:"steps,omitempty"`
	Action    train.Action `toml:"action" json:"action"`
}

// DefaultRules is the name of rules that need no file.
const DefaultRules = "default"

// defaultRules skip a step whose gradient is far above those before, widen what saturates for
// long, and go back over steps in which the loss has risen for long.
var defaultRules = []train.Rule{
	{Series: train.SeriesGradientNorm, Threshold: 20, Action: train.ActionSkip},
	{Series: train.SeriesSaturated, AtLeast: 0.01, Steps: 3, Action: train.ActionWiden},
	{Series: train.SeriesLoss, Steps: 5, Action: train.ActionRewind},
}

// maxRules is the size of the largest file of rules.
const maxRules = 1 << 20

// ReadRules reads the rules in a TOML file, tables [[rule]] with the fields of [train.Rule], or
// returns the default ones.
func ReadRules(path string) ([]train.Rule, error) {
	if path == DefaultRules {
		return defaultRules, nil
	}
	text, err := inputfile.ReadAll(path, maxRules)
	if err != nil {
		return nil, err
	}
	rules, err := parseRules(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", textout.Name(path), err)
	}
	return rules, nil
}

func parseRules(text []byte) (rules []train.Rule, err error) {
	var file struct {
		Rule []ruleFile `toml:"rule"`
	}
	if err := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(&file); err != nil {
		return nil, tomlError(err)
	}
	if len(file.Rule) == 0 {
		return nil, errors.New("there is no rule in it: want tables [[rule]] with series and action")
	}
	for i, f := range file.Rule {
		r := train.Rule(f)
		if err := r.Check(); err != nil {
			return nil, fmt.Errorf("rule %d: %w", i+1, err)
		}
		if r.Series == train.SeriesRanks {
			return nil, fmt.Errorf("rule %d: series is ranks: this run has one rank: leave the rule out", i+1)
		}
		rules = append(rules, r)
	}
	return rules, nil
}

// tomlError says in one line where a file is wrong.
func tomlError(err error) error {
	var unknown *toml.StrictMissingError
	if errors.As(err, &unknown) && len(unknown.Errors) > 0 {
		e := unknown.Errors[0]
		line, _ := e.Position()
		return fmt.Errorf("line %d: there is no field %s: want series, tensor, op, window, least, "+
			"threshold, at-least, steps and action", line, strings.Join(e.Key(), "."))
	}
	var wrong *toml.DecodeError
	if errors.As(err, &wrong) {
		line, column := wrong.Position()
		why := strings.TrimPrefix(strings.TrimPrefix(wrong.Error(), "toml: "), "train: ")
		return fmt.Errorf("line %d, column %d: %s", line, column, why)
	}
	return err
}
