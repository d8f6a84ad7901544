package train

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
)

// differenceText says how two models differ: formats with what the first one has and
// then the other.
type differenceText struct {
	kind  string // of kinds and versions
	value string // of a place and two values
}

var (
	sinceSaved = differenceText{
		"the model was of kind %.40q, version %d, when it was saved and is of kind %.40q, version %d",
		"%s was %s when it was saved and is %s",
	}
	amongReplicas = differenceText{
		"the model is of kind %.40q, version %d, and a replica of kind %.40q, version %d",
		"%s is %s and a replica's is %s",
	}
)

// compareJSON returns an error that names the first place, in alphabetical order of
// fields, in which two JSON texts differ, and both values.
func compareJSON(place string, saved, present []byte, text differenceText) error {
	was, err := decodeJSON(saved)
	if err != nil {
		return damaged("%s: %w", place, err)
	}
	is, err := decodeJSON(present)
	if err != nil {
		return inputError("%s: %w", place, err)
	}
	return compareValues(place, was, is, text)
}

// decodeJSON keeps numbers as they are written.
func decodeJSON(text []byte) (v any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	err = decoder.Decode(&v)
	return v, err
}

func compareValues(place string, was, is any, text differenceText) error {
	switch was := was.(type) {
	case map[string]any:
		if is, ok := is.(map[string]any); ok {
			return compareObjects(place, was, is, text)
		}
	case []any:
		if is, ok := is.([]any); ok && len(was) == len(is) {
			for i := range was {
				if err := compareValues(place+"["+strconv.Itoa(i)+"]", was[i], is[i], text); err != nil {
					return err
				}
			}
			return nil
		}
	}
	if reflect.DeepEqual(was, is) {
		return nil
	}
	return mismatch(text.value, place, shown(was), shown(is))
}

// compareObjects takes a field that is missing for null.
func compareObjects(place string, was, is map[string]any, text differenceText) error {
	names := slices.AppendSeq(slices.Collect(maps.Keys(was)), maps.Keys(is))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		field := place + "." + name
		if _, known := is[name]; !known { // a name that may be anything
			field = fmt.Sprintf("%s.%.40q", place, name)
		}
		if err := compareValues(field, was[name], is[name], text); err != nil {
			return err
		}
	}
	return nil
}

// shown is a value as text of bounded length, without control characters.
func shown(v any) string {
	switch v := v.(type) {
	case map[string]any:
		return "set"
	case nil:
		return "not set"
	case json.Number, bool:
		return fmt.Sprintf("%.60s", fmt.Sprint(v))
	default:
		return fmt.Sprintf("%.60q", fmt.Sprint(v))
	}
}
