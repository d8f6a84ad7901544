package comparison

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/internal/jsonout"
	"github.com/octavo-fp8/octavo/telemetry"
	"github.com/octavo-fp8/octavo/train"
)

// exactNumber is a float64 that may be NaN or infinite, and comes back with its bits but for
// those of a NaN.
type exactNumber = jsonout.Number

// marshalExact returns the JSON of a value: floats are exact numbers, fields of embedded structs
// lie among the others, and names without a tag are those of Go in small letters, as in
// gradient_norm.
func marshalExact(value any) ([]byte, error) {
	from := reflect.ValueOf(value)
	to := reflect.New(mirror(from.Type())).Elem()
	transfer(to, from)
	return json.Marshal(to.Interface())
}

// unmarshalExact reads what marshalExact wrote of a value of the same type.
func unmarshalExact(data []byte, value any) error {
	to := reflect.ValueOf(value).Elem()
	from := reflect.New(mirror(to.Type()))
	if err := json.Unmarshal(data, from.Interface()); err != nil {
		return err
	}
	transfer(to, from.Elem())
	return nil
}

// asTheyAre are types that say by themselves how they are written.
var asTheyAre = []reflect.Type{
	reflect.TypeFor[train.Suspects](), reflect.TypeFor[flightJSON](), reflect.TypeFor[json.RawMessage](),
}

// mirror returns the type that stands for t in encoding/json.
func mirror(t reflect.Type) reflect.Type {
	switch {
	case slices.Contains(asTheyAre, t):
		return t
	case t.Kind() == reflect.Float32 || t.Kind() == reflect.Float64:
		return reflect.TypeFor[exactNumber]()
	case t.Kind() == reflect.Slice:
		return reflect.SliceOf(mirror(t.Elem()))
	case t.Kind() == reflect.Pointer:
		return reflect.PointerTo(mirror(t.Elem()))
	case t.Kind() != reflect.Struct:
		return t
	}
	var fields []reflect.StructField
	for _, index := range fieldsOf(t) {
		f := t.FieldByIndex(index)
		tag := f.Tag
		if tag == "" {
			tag = reflect.StructTag(`json:"` + jsonName(t, f) + `"`)
		}
		fields = append(fields, reflect.StructField{Name: f.Name, Type: mirror(f.Type), Tag: tag})
	}
	return reflect.StructOf(fields)
}

// fieldsOf returns the fields of a struct that are kept, of an embedded one each of its own but
// for an event's summary, which is a part by itself.
func fieldsOf(t reflect.Type) (all [][]int) {
	for i := range t.NumField() {
		switch f := t.Field(i); {
		case f.Tag.Get("json") == "-":
		case f.Anonymous && t != reflect.TypeFor[telemetry.Event]():
			for _, inner := range fieldsOf(f.Type) {
				all = append(all, append([]int{i}, inner...))
			}
		default:
			all = append(all, []int{i})
		}
	}
	return all
}

var wordEnd = regexp.MustCompile(`([a-z])([A-Z])`)

func jsonName(t reflect.Type, f reflect.StructField) string {
	name := strings.ReplaceAll(f.Name, "NaN", "Nan")
	if t == reflect.TypeFor[telemetry.Event]() && name == "First" {
		name = "FirstNonFinite"
	}
	name = strings.ToLower(wordEnd.ReplaceAllString(name, "${1}_$2"))
	if f.Type.Kind() == reflect.Pointer {
		name += ",omitempty"
	}
	return name
}

// transfer copies a value of a type to one of its mirror, or the other way round.
func transfer(to, from reflect.Value) {
	switch {
	case from.Type() == to.Type():
		to.Set(from)
	case from.Kind() == reflect.Slice && !from.IsNil():
		to.Set(reflect.MakeSlice(to.Type(), from.Len(), from.Len()))
		for i := range from.Len() {
			transfer(to.Index(i), from.Index(i))
		}
	case from.Kind() == reflect.Pointer && !from.IsNil():
		to.Set(reflect.New(to.Type().Elem()))
		transfer(to.Elem(), from.Elem())
	case from.Kind() == reflect.Struct:
		in, out := fieldsOf(from.Type()), fieldsOf(to.Type())
		for i := range in {
			transfer(to.FieldByIndex(out[i]), from.FieldByIndex(in[i]))
		}
	case from.CanConvert(to.Type()):
		to.Set(from.Convert(to.Type()))
	}
}
