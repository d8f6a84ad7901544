// Package tensorfile is what the commands share that read FP8 tensors from
// safetensors files and write them there: how codes and scales are stored, and
// values in the type that a file holds them in.
package tensorfile

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
)

// Open opens a safetensors file. Its errors say what is wanted.
func Open(path string) (*safetensors.File, error) {
	file, err := safetensors.Open(path)
	if err != nil {
		return nil, Wanted(err)
	}
	return file, nil
}

// Wanted adds to an error of a file that cannot be opened what is wanted.
func Wanted(err error) error {
	if system := (*fs.PathError)(nil); errors.As(err, &system) {
		return fmt.Errorf("%w: name a safetensors file", err)
	}
	return fmt.Errorf("%w: want a complete safetensors file", err)
}

// Find returns the description of a tensor that has to be there.
func Find(file *safetensors.File, name string) (safetensors.Info, error) {
	info, ok := file.Info(name)
	if !ok {
		return info, fmt.Errorf("the file has no tensor %q: octavo inspect lists the tensors", name)
	}
	return info, nil
}

// Has reports whether a file has a tensor.
func Has(file *safetensors.File, name string) bool {
	_, ok := file.Info(name)
	return ok
}

// Selects reports whether a pattern, of which nil matches all, matches a name.
func Selects(only *regexp.Regexp, name string) bool { return only == nil || only.MatchString(name) }

// Profiles returns the profiles that can be applied to a file: all but those that need the
// amax of earlier steps.
func Profiles() []scaling.Profile {
	return slices.DeleteFunc(scaling.Profiles(), scaling.Profile.Delayed)
}

// ProfilesFor returns those of Profiles that are for a format.
func ProfilesFor(f fp8.Format) []scaling.Profile {
	return slices.DeleteFunc(scaling.ProfilesFor(f), scaling.Profile.Delayed)
}
