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

// compareJSON returns an error that names the first place, in alphabetical order of
// fields, in which two JSON texts differ, and both values.
func compareJSON(place string, saved, present []byte) error {
	was, err := decodeJSON(saved)
	if err != nil {
		return damaged("%s: %w", place, err)
	}
	is, err := decodeJSON(present)
	if err != nil {
		return inputError("%s: %w", place, err)
	}
	return compareValues(place, was, is)
}

// decodeJSON keeps numbers as they are written.
func decodeJSON(text []byte) (v any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	err = decoder.Decode(&v)
	return v, err
}

func compareValues(place string, was, is any) error {
	switch was := was.(type) {
	case map[string]any:
		if is, ok := is.(map[string]any); ok {
			return compareObjects(place, was, is)
		}
	case []any:
		if is, ok := is.([]any); ok && len(was) == len(is) {
			for i := range was {
				if err := compareValues(place+"["+strconv.Itoa(i)+"]", was[i], is[i]); err != nil {
					return err
				}
			}
			return nil
		}
	}
	if reflect.DeepEqual(was, is) {
		return nil
	}
	return mismatch("%s was %s when it was saved and is %s", place, shown(was), shown(is))
}

// compareObjects takes a field that is missing for null.
func compareObjects(place string, was, is map[string]any) error {
	names := slices.AppendSeq(slices.Collect(maps.Keys(was)), maps.Keys(is))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if err := compareValues(place+"."+name, was[name], is[name]); err != nil {
			return err
		}
	}
	return nil
}

// shown is a value as text of bounded length.
func shown(v any) string {
	switch v.(type) {
	case map[string]any:
		return "set"
	case nil:
		return "not set"
	}
	return fmt.Sprintf("%.60v", v)
}
