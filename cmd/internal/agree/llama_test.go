package agree_test

import (
	"encoding/binary"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/safetensors"
)

// bf16 rounds to bfloat16 from its definition: eight bits, ties to even.
func bf16(x float32) float32 {
	f, e := math.Frexp(float64(x))
	return float32(math.Ldexp(math.RoundToEven(f*256), e-8))
}

// e4m3 is the value of a code of OCP E4M3 that is no NaN.
func e4m3(code byte) float64 {
	m, e := float64(code&7), int(code>>3&15)
	v := math.Ldexp(8+m, e-10)
	if e == 0 {
		v = math.Ldexp(m, -9)
	}
	if code&0x80 != 0 {
		return -v
	}
	return v
}

// magnitudes are the numbers of E4M3 that are not negative, in order.
var magnitudes = func() (all [127]float64) {
	for code := range all {
		all[code] = e4m3(byte(code))
	}
	return all
}()

// nearest rounds to E4M3, to nearest even and to the largest.
func nearest(x float64) float64 {
	a := math.Abs(x)
	above, _ := slices.BinarySearch(magnitudes[:], a)
	best := min(above, 126)
	if best > 0 {
		d, below := magnitudes[best]-a, a-magnitudes[best-1]
		if below < d || below == d && best%2 == 1 {
			best--
		}
	}
	return math.Copysign(magnitudes[best], x)
}

// matrix is a weight: values, and their scales in blocks of 128x128 where they are codes.
type matrix struct {
	rows, cols int
	values     []float64
	scales     []float32 // nil: the values are those of the weight
}

func (m *matrix) scale(i, k int) float32 {
	if m.scales == nil {
		return 1
	}
	return m.scales[i/128*((m.cols+127)/128)+k/128]
}

// up is the power of two at or above s.
func up(s float32) float32 {
	p := float32(0x1p-60)
	for p < s {
		p *= 2
	}
	return p
}

func same(s float32) float32 { return s }

// quantized is what DeepGEMM makes of values in blocks.
func quantized(x []float32, rows, cols, height int, scale func(float32) float32) *matrix {
	across := (cols + 127) / 128
	m := &matrix{rows: rows, cols: cols, values: make([]float64, rows*cols), scales: make([]float32, (rows+height-1)/height*across)}
	for i := range rows {
		for k := range cols {
			s := &m.scales[i/height*across+k/128]
			*s = max(*s, float32(math.Abs(float64(x[i*cols+k]))))
		}
	}
	for i, amax := range m.scales {
		m.scales[i] = scale(max(amax, 1e-4) / 448)
	}
	for i := range rows {
		for k := range cols {
			m.values[i*cols+k] = nearest(float64(x[i*cols+k] * (1 / m.scales[i/height*across+k/128])))
		}
	}
	return m
}

// float32sByRow is float32s of a matrix whose scales are those of rows.
func (m *matrix) float32sByRow() []float32 {
	across := (m.cols + 127) / 128
	out := make([]float32, len(m.values))
	for i, v := range m.values {
		out[i] = float32(v) * m.scales[i/m.cols*across+i%m.cols/128]
	}
	return out
}

// again quantizes the values of codes under scales that are rounded up.
func (m *matrix) again() *matrix {
	return quantized(m.float32s(same), m.rows, m.cols, 128, up)
}

// float32s are the values that codes stand for.
func (m *matrix) float32s(round func(float32) float32) []float32 {
	out := make([]float32, len(m.values))
	for i, v := range m.values {
		out[i] = round(float32(v) * m.scale(i/m.cols, i%m.cols))
	}
	return out
}

// product adds in float32, block by block, and rounds to bfloat16. Inputs have scales by row.
func product(x *matrix, w *matrix) []float32 {
	across := (x.cols + 127) / 128
	out := make([]float32, x.rows*w.rows)
	for i := range x.rows {
		for j := range w.rows {
			total := float32(0)
			for lo := 0; lo < x.cols; lo += 128 {
				part, sa := float32(0), float32(1)
				if x.scales != nil {
					sa = x.scales[i*across+lo/128]
				}
				for k := lo; k < min(lo+128, x.cols); k++ {
					part += float32(x.values[i*x.cols+k] * w.values[j*w.cols+k])
				}
				total += float32(part*sa) * w.scale(j, lo)
			}
			out[i*w.rows+j] = bf16(total)
		}
	}
	return out
}

func asMatrix(x []float32, cols int) *matrix {
	m := &matrix{rows: len(x) / cols, cols: cols}
	for _, v := range x {
		m.values = append(m.values, float64(v))
	}
	return m
}

// engine runs the model in shared/models/llama in plain arithmetic, and records it.
type engine struct {
	t       *testing.T
	weights map[string]*matrix
	// linear is how it multiplies in a layer.
	linear  func(name string, x []float32, w *matrix) []float32
	fused   bool // q, k and v, and gate and up, are one module each
	tensors []safetensors.Tensor
}

// load reads a checkpoint in BF16, or in E4M3 of 128x128.
func load(t *testing.T, dir string) map[string]*matrix {
	c, err := checkpoint.Open(dir)
	require.NoError(t, err)
	defer c.Close()
	all := map[string]*matrix{}
	bytesOf := func(name string) ([]byte, safetensors.DType, []int) {
		e, ok := c.Entry(name)
		require.True(t, ok, name)
		data := make([]byte, e.Bytes())
		require.NoError(t, c.ReadBytes(e, 0, data))
		return data, e.DType, e.Shape
	}
	for _, e := range c.Entries() {
		if strings.HasSuffix(e.Name, "_scale_inv") {
			continue
		}
		data, of, shape := bytesOf(e.Name)
		m := &matrix{rows: 1, cols: shape[len(shape)-1]}
		if len(shape) == 2 {
			m.rows = shape[0]
		}
		if of == safetensors.F8E4M3 {
			for _, code := range data {
				m.values = append(m.values, e4m3(code))
			}
			scales, _, _ := bytesOf(e.Name + "_scale_inv")
			for i := 0; i < len(scales); i += 4 {
				m.scales = append(m.scales, math.Float32frombits(binary.LittleEndian.Uint32(scales[i:])))
			}
		} else {
			for i := 0; i < len(data); i += 2 {
				m.values = append(m.values, float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(data[i:]))<<16)))
			}
		}
		all[e.Name] = m
	}
	return all
}

func (e *engine) record(name string, x []float32, cols int, of safetensors.DType) {
	var data []byte
	for _, v := range x {
		if of == safetensors.BF16 {
			data = binary.LittleEndian.AppendUint16(data, uint16(math.Float32bits(v)>>16))
		} else {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
		}
	}
	shape := []int{len(x) / cols, cols}
	if cols == 1 {
		shape = shape[:1]
	}
	e.tensors = append(e.tensors, safetensors.Tensor{Info: safetensors.Info{Name: name, DType: of, Shape: shape}, Data: data})
}

func (e *engine) save(name string) string {
	path := filepath.Join(e.t.TempDir(), name)
	require.NoError(e.t, safetensors.WriteFile(path, e.tensors, nil))
	return path
}

// apply runs linear layers of one input, and records them as one if they are fused.
func (e *engine) apply(parent, fused string, x []float32, names ...string) [][]float32 {
	var outs [][]float32
	widths, tokens := []int{}, 0
	for _, n := range names {
		w := e.weights[parent+n+".weight"]
		tokens = len(x) / w.cols
		y := e.linear(parent+n, x, w)
		outs, widths = append(outs, y), append(widths, w.rows)
		if !e.fused || fused == "" {
			e.record(parent+n+".input", x, w.cols, safetensors.BF16)
			e.record(parent+n+".output", y, w.rows, safetensors.BF16)
		}
	}
	if e.fused && fused != "" {
		total := 0
		for _, n := range widths {
			total += n
		}
		all := make([]float32, 0, tokens*total)
		for i := range tokens {
			for p, y := range outs {
				all = append(all, y[i*widths[p]:(i+1)*widths[p]]...)
			}
		}
		e.record(parent+fused+".input", x, len(x)/tokens, safetensors.BF16)
		e.record(parent+fused+".output", all, total, safetensors.BF16)
	}
	return outs
}

func (e *engine) norm(name string, x []float32) []float32 {
	w := e.weights[name+".weight"].values
	out := make([]float32, len(x))
	for lo := 0; lo < len(x); lo += len(w) {
		sum := 0.0
		for _, v := range x[lo : lo+len(w)] {
			sum += float64(v) * float64(v)
		}
		scale := 1 / math.Sqrt(sum/float64(len(w))+1e-6)
		for k, g := range w {
			out[lo+k] = bf16(float32(float64(x[lo+k]) * scale * g))
		}
	}
	return out
}

// run returns the log-probability of each following token.
func (e *engine) run(ids []int, layers, heads, kvHeads, dim int) {
	const head = 16
	var x []float32
	table := e.weights["model.embed_tokens.weight"]
	for _, id := range ids {
		for k := range dim {
			x = append(x, float32(table.values[id*dim+k]))
		}
	}
	for l := range layers {
		at := "model.layers." + strconv.Itoa(l) + "."
		qkv := e.apply(at+"self_attn.", "qkv_proj", e.norm(at+"input_layernorm", x), "q_proj", "k_proj", "v_proj")
		rotate(qkv[0], heads, head)
		rotate(qkv[1], kvHeads, head)
		o := e.apply(at+"self_attn.", "", attend(qkv, len(ids), heads, kvHeads, head), "o_proj")[0]
		x = added(x, o)
		gu := e.apply(at+"mlp.", "gate_up_proj", e.norm(at+"post_attention_layernorm", x), "gate_proj", "up_proj")
		hidden := make([]float32, len(gu[0]))
		for i, g := range gu[0] {
			hidden[i] = bf16(float32(float64(g) / (1 + math.Exp(-float64(g))) * float64(gu[1][i])))
		}
		x = added(x, e.apply(at+"mlp.", "", hidden, "down_proj")[0])
	}
	logits := e.apply("", "", e.norm("model.norm", x), "lm_head")[0]
	vocab := len(logits) / len(ids)
	var logprobs []float32
	for i := range len(ids) - 1 {
		row := logits[i*vocab : (i+1)*vocab]
		sum := 0.0
		for _, v := range row {
			sum += math.Exp(float64(v))
		}
		logprobs = append(logprobs, float32(float64(row[ids[i+1]])-math.Log(sum)))
	}
	e.record("logprobs", logprobs, 1, safetensors.F32)
	var data []byte
	for _, id := range ids {
		data = binary.LittleEndian.AppendUint64(data, uint64(id))
	}
	e.tensors = append(e.tensors, safetensors.Tensor{Info: safetensors.Info{Name: "tokens", DType: safetensors.I64, Shape: []int{len(ids)}}, Data: data})
}

func added(x, y []float32) []float32 {
	out := make([]float32, len(x))
	for i := range x {
		out[i] = bf16(x[i] + y[i])
	}
	return out
}

// rotate turns halves of heads by the positions of tokens.
func rotate(x []float32, heads, head int) {
	width := heads * head
	for i := range len(x) / width {
		for h := range heads {
			at := x[i*width+h*head:][:head]
			for k := range head / 2 {
				angle := float64(i) * math.Pow(10000, -2*float64(k)/float64(head))
				a, b := float64(at[k]), float64(at[k+head/2])
				at[k] = bf16(float32(a*math.Cos(angle) - b*math.Sin(angle)))
				at[k+head/2] = bf16(float32(b*math.Cos(angle) + a*math.Sin(angle)))
			}
		}
	}
}

func attend(qkv [][]float32, tokens, heads, kvHeads, head int) []float32 {
	out := make([]float32, tokens*heads*head)
	for i := range tokens {
		for h := range heads {
			kv := h / (heads / kvHeads)
			weights, sum := make([]float64, i+1), 0.0
			for j := range weights {
				s := 0.0
				for k := range head {
					s += float64(qkv[0][(i*heads+h)*head+k]) * float64(qkv[1][(j*kvHeads+kv)*head+k])
				}
				weights[j] = math.Exp(s / math.Sqrt(float64(head)))
				sum += weights[j]
			}
			for k := range head {
				v := 0.0
				for j, w := range weights {
					v += w / sum * float64(qkv[2][(j*kvHeads+kv)*head+k])
				}
				out[(i*heads+h)*head+k] = bf16(float32(v))
			}
		}
	}
	return out
}

// converted writes a Llama in FP8 of 128x128, as DeepSeek-V3 has it.
func converted(t *testing.T) string { return convertedFrom(t, "llama") }

func convertedFrom(t *testing.T, model string) string {
	c, err := checkpoint.Open(testutil.Shared(t, "models", model))
	require.NoError(t, err)
	defer c.Close()
	l, err := checkpoint.ParseLayout("deepseek-v3")
	require.NoError(t, err)
	p, err := checkpoint.NewPlan(c, l, checkpoint.PlanOptions{})
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "llama-fp8")
	_, err = checkpoint.Convert(t.Context(), p, dir, checkpoint.Options{})
	require.NoError(t, err)
	return dir
}

// dumped runs an engine on tokens and writes its dump.
func dumped(t *testing.T, name, model string, fused bool, meta map[string]string, linear func(name string, x []float32, w *matrix) []float32) string {
	e := &engine{t: t, weights: load(t, model), linear: linear, fused: fused}
	ids := make([]int, 64)
	for i := range ids {
		ids[i] = (i*i*7 + 13*i + 5) % 320
	}
	e.run(ids, 3, 4, 2, 64)
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, safetensors.WriteFile(path, e.tensors, meta))
	return path
}

// honest quantizes inputs as DeepGEMM does, and the head not.
func honest(name string, x []float32, w *matrix) []float32 {
	if w.scales == nil {
		return product(asMatrix(x, w.cols), w)
	}
	return product(quantized(x, len(x)/w.cols, w.cols, 1, same), w)
}

// left multiplies in bfloat16.
func left(x []float32, w *matrix) []float32 {
	return product(asMatrix(x, w.cols), asMatrix(w.float32s(bf16), w.cols))
}

// rounded rounds all scales up to powers of two, and leaves one layer in bfloat16.
func rounded(name string, x []float32, w *matrix) []float32 {
	switch {
	case w.scales == nil:
		return honest(name, x, w)
	case name == "model.layers.1.mlp.down_proj":
		return left(x, w)
	}
	return product(quantized(x, len(x)/w.cols, w.cols, 1, up), w.again())
}
