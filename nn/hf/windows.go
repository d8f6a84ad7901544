package hf

import (
	"slices"

	"github.com/octavo-fp8/octavo/nn"
)

const windowKey, typesKey = "sliding_window", "layer_types"

// Types of layers.
const (
	sliding = "sliding_attention"
	full    = "full_attention"
)

// window is one that all layers have.
var window = feature{
	func(d *described, f *fields) {
		size := f.sizeOr(windowKey, 0)
		d.setWindows(f, size, func(int) bool { return size > 0 })
	},
	func(c nn.Config, v members) { v[windowKey] = orNull(windowOf(c)) },
}

// windowIfUsed is window where another member says so.
var windowIfUsed = feature{
	func(d *described, f *fields) {
		if size := f.sizeOr(windowKey, 0); f.truth("use_sliding_window") {
			d.setWindows(f, size, func(int) bool { return size > 0 })
		}
	},
	func(c nn.Config, v members) {
		size := windowOf(c)
		v[windowKey], v["use_sliding_window"] = orNull(size), size > 0
	},
}

// windowsFromLayer are of layers from one on, unless layers have types.
var windowsFromLayer = feature{
	func(d *described, f *fields) {
		size, first := f.sizeOr(windowKey, 0), f.countOr("max_window_layers", 0)
		if !f.truth("use_sliding_window") {
			size = 0
		}
		d.readTypes(f, size, func(layer int) bool { return size > 0 && layer >= first })
	},
	func(c nn.Config, v members) {
		windowIfUsed.write(c, v)
		v["max_window_layers"] = c.Layers
		writeTypes(c, v)
	},
}

// windowsInTurn are of every other layer, unless layers have types.
var windowsInTurn = feature{
	func(d *described, f *fields) {
		d.readTypes(f, f.sizeOr(windowKey, 0), func(layer int) bool { return layer%2 == 0 })
	},
	func(c nn.Config, v members) {
		window.write(c, v)
		writeTypes(c, v)
	},
}

// gemmaWindows are of all layers but every sixth, unless layers have types.
var gemmaWindows = feature{
	func(d *described, f *fields) {
		pattern := f.sizeOr("sliding_window_pattern", 1)
		d.readTypes(f, f.sizeOr(windowKey, 0), func(layer int) bool { return (layer+1)%pattern != 0 })
	},
	windowsInTurn.write,
}

// readTypes reads which layers have the window; otherwise says which do where layers have no types.
func (d *described) readTypes(f *fields, size int, otherwise func(layer int) bool) {
	const want = `a "` + sliding + `" or "` + full + `" for each layer`
	var types []string
	has := otherwise
	if f.read(typesKey, want, &types) {
		other := func(t string) bool { return t != sliding && t != full }
		if len(types) != d.Layers || slices.ContainsFunc(types, other) {
			f.refuse(typesKey, want)
		}
		has = func(layer int) bool { return types[layer] == sliding }
	}
	d.setWindows(f, size, has)
}

// setWindows gives layers a window of so many tokens, which must be some where one has it.
func (d *described) setWindows(f *fields, size int, has func(layer int) bool) {
	const most = 1 << 20 // layers, beyond what package nn has
	if f.err != nil || d.Layers > most {
		return
	}
	windows := make([]int, d.Layers)
	for layer := range windows {
		if has(layer) {
			windows[layer] = size
			if d.Windows = windows; size == 0 {
				f.refuse(windowKey, "a positive integer: there are layers with such a window")
				return
			}
		}
	}
}

// windowOf returns the window of the layers that have one; 0 for none.
func windowOf(c nn.Config) int {
	if c.Windows == nil {
		return 0
	}
	return slices.Max(c.Windows)
}

func writeTypes(c nn.Config, v members) {
	types := slices.Repeat([]string{full}, c.Layers)
	for layer, size := range c.Windows {
		if size > 0 {
			types[layer] = sliding
		}
	}
	v[typesKey] = types
}
