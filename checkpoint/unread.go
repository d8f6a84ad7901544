package checkpoint

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/safetensors"
)

// Unread is a method of quantization that is not read, and what a checkpoint has of it.
type Unread struct {
	// Method is its name, such as "GPTQ", or UnknownMethod. It is "" for matrices of integers that may be codes or
	// tables and are not beside anything that says so.
	Method string `json:"method"`

	// Declared says that the configuration names the method. Contradicted says that it does, that
	// tensors of the method have names and types of their own, and that no tensor has those.
	Declared     bool `json:"declared"`
	Contradicted bool `json:"contradicted,omitempty"`

	// Tensors are the names of the stored tensors that are not understood, file by file. It is
	// empty where a method is declared and nothing is quantized.
	Tensors []string `json:"tensors"`
}

// UnknownMethod is the method of integers in the place of a weight that nothing explains.
const UnknownMethod = "a method that is not known"

// String names the method in a sentence.
func (u Unread) String() string { return cmp.Or(u.Method, "no method that is known") }

// Unread returns the methods of quantization that are not read, by the configuration and by the
// names and types of tensors, the one that is declared first; none where all is understood.
// Where the configuration declares a method that is not read, all weights that are quantized
// are taken to be of it, in whatever way they are stored.
func (c *Checkpoint) Unread() []Unread {
	list := slices.Clone(c.unread)
	for i := range list {
		list[i].Tensors = slices.Clone(list[i].Tensors)
	}
	return list
}

// unreadOf returns the method of a weight that is not understood, and whether it is none.
func (w *Weight) unreadOf() (method string, unread bool) {
	for _, part := range w.Parts {
		if part.Name != "" && !unread {
			method, unread = w.from.foreign[part.Name]
		}
	}
	return method, unread
}

// declarable are the methods that are not read and whose tensors have names of their own, by what
// configurations call them.
var declarable = map[string]string{
	"gptq": "GPTQ", "awq": "AWQ", "bitsandbytes": "bitsandbytes", "hqq": "HQQ", "aqlm": "AQLM", "eetq": "EETQ",
	"quanto": "quanto", "spqr": "SpQR", "vptq": "VPTQ", "quip": "QuIP#", "exl2": "EXL2", "exl3": "EXL3", "marlin": "Marlin",
}

// declaredUnread returns the method that a configuration declares and that is not read, "" for
// none.
func (c Config) declaredUnread() string {
	method := c.Method()
	format, _ := lookUp(c.Quantization, "format").(string)
	read := method == ""
	for _, l := range layouts {
		read = read || slices.Contains(l.When, Condition{"quant_method", method})
	}
	switch {
	case method == "" && (lookUp(c.Quantization, "load_in_4bit") == true || lookUp(c.Quantization, "load_in_8bit") == true):
		return "bitsandbytes"
	case method == "compressed-tensors" && format != "" && !readFormat(format):
		return method + " " + format
	case read:
		return ""
	}
	return cmp.Or(declarable[method], method)
}

// readFormat reports whether compressed-tensors' format has codes that are floats, or may have.
func readFormat(format string) bool {
	return slices.Contains([]string{"dense", "naive-quantized", "mixed-precision"}, format) ||
		slices.ContainsFunc(layouts, func(l *Layout) bool { return slices.Contains(l.When, Condition{"format", format}) })
}

// Types of codes that are integers, and of those that are packed in words.
var (
	integers = []safetensors.DType{
		safetensors.I8, safetensors.U8, safetensors.I16, safetensors.U16,
		safetensors.I32, safetensors.U32, safetensors.I64, safetensors.U64,
	}
	words = []safetensors.DType{safetensors.I32, safetensors.U32}
)

// marks are what follows the name of a module in names of tensors that only one method has, in
// these types or, where there are none, in any.
var marks = []struct {
	suffix, method string
	types          []safetensors.DType
}{
	{".qweight", "GPTQ", words}, // or AWQ: see packed
	{".qzeros", "GPTQ or AWQ", words},
	{".absmax", "bitsandbytes", nil},
	{".quant_map", "bitsandbytes", nil},
	{".SCB", "bitsandbytes", nil},
	{".W_q", "HQQ", nil},
	{".codebooks", "AQLM", nil},
	{".dense_weights", "SpQR", nil},
	{".centroids.weight", "VPTQ", nil},
	{".Qidxs", "QuIP#", nil},
	{".q_weight", "EXL2", words},
	{".trellis", "EXL3", nil},
	{"._data", "quanto", nil},
	{".B", "Marlin", words},
	{".qweight_type", "GGUF", nil},
	{".comfy_quant", "ComfyUI", nil},
	{".weight_packed", "compressed-tensors pack-quantized", words},
	{".weight_zero_point", "compressed-tensors with zero points", nil},
	{".bitmask", "compressed-tensors sparse-bitmask", nil},
	{".pre_quant_scale", "ModelOpt AWQ", nil},
	{"._weight_zero_point", "torchao", nil},
	{"._weight_qdata", "torchao", append([]safetensors.DType{safetensors.F8E5M2}, integers...)},
}

// noCodes are matrices of integers that are indexes or masks.
var noCodes = regexp.MustCompile(`(^|\.)(position_ids|token_type_ids|[a-z_]*relative_position_index|tid2eid|[a-z_]*mask|[a-z_]*bias)$`)

// findUnread finds what is not understood, once weights are known.
func (c *Checkpoint) findUnread() {
	declared := c.Config.declaredUnread()
	known := slices.Contains(slices.Collect(maps.Values(declarable)), declared)
	seen := false // a tensor that only the declared method has
	c.modules = map[string]string{}
	for _, methodOf := range []func(Entry) (string, string){c.marked, c.integersOf} { // names tell more than types
		for _, e := range c.entries {
			module, method := methodOf(e)
			if method == "" || c.modules[module] != "" && !strings.HasSuffix(e.Name, ".qweight") {
				continue
			}
			alike := strings.Contains("GPTQ or AWQ", method) && strings.Contains("GPTQ or AWQ", declared)
			if declared != "" && (alike || !known) {
				method = declared
			}
			seen = seen || method == declared
			c.modules[module] = method
		}
	}
	c.foreign = map[string]string{}
	at := map[string]int{}
	if declared != "" {
		at[declared] = 0
		c.unread = []Unread{{Method: declared, Declared: true, Contradicted: known && !seen}}
	}
	for _, e := range c.entries {
		method := moduleMethod(c.modules, e.Name)
		w := c.whose[e.Name]
		switch {
		case method != "":
		case declared != "" && w.Scheme != nil:
			method = declared
		case w.Scheme != nil || !maybeCodes(e):
			continue
		}
		i, ok := at[method]
		if !ok {
			i = len(c.unread)
			at[method] = i
			c.unread = append(c.unread, Unread{Method: method, Declared: c.declares(method)})
		}
		c.unread[i].Tensors = append(c.unread[i].Tensors, e.Name)
		c.foreign[e.Name] = method
	}
}

// maybeCodes reports whether a tensor is a matrix of integers that may be codes.
func maybeCodes(e Entry) bool {
	wide := e.DType == safetensors.I64 || e.DType == safetensors.U64
	return slices.Contains(integers, e.DType) && !wide && len(e.Shape) > 1 && !noCodes.MatchString(e.Name)
}

// declares reports whether a method that is named by its tensors is one that is declared: as a
// variant of one that is read, or elsewhere than in quantization_config. MLX has a member of its
// own, and older GPTQ and AWQ a file beside config.json.
func (c *Checkpoint) declares(method string) bool {
	if own := c.Config.Method(); own != "" && own != "fp8" && strings.HasPrefix(strings.ToLower(method), own) {
		return true
	}
	switch _, mlx := c.Config.Model["quantization"]; method {
	case "MLX":
		return mlx
	case "GPTQ", "AWQ", "GPTQ or AWQ":
		return slices.Contains(c.others, "quantize_config.json") || slices.Contains(c.others, "quant_config.json")
	}
	return false
}

// marked returns the method that the name of a tensor shows its module to be quantized by, "" for
// none.
func (c *Checkpoint) marked(e Entry) (module, method string) {
	if at := strings.Index(e.Name, ".quant_state."); at > 0 {
		module, method = e.Name[:at], "bitsandbytes"
	}
	for _, m := range marks {
		if name, ok := strings.CutSuffix(e.Name, m.suffix); ok && (m.types == nil || slices.Contains(m.types, e.DType)) {
			module, method = name, m.method
		}
	}
	if method == "GPTQ" {
		method = c.packed(e, module)
	}
	return strings.TrimSuffix(module, ".weight"), method
}

// packed tells GPTQ, which packs eight rows in one, from AWQ, which packs columns.
func (c *Checkpoint) packed(e Entry, module string) string {
	scales, ok := c.Entry(module + ".scales")
	if _, order := c.Entry(module + ".g_idx"); order {
		return "GPTQ"
	}
	switch {
	case !ok || len(e.Shape) != 2 || len(scales.Shape) != 2:
		return "GPTQ or AWQ"
	case e.Shape[1] == scales.Shape[1]:
		return "GPTQ"
	}
	return "AWQ"
}

// integersOf returns the method of a weight that is stored as integers, "" if it is not.
func (c *Checkpoint) integersOf(e Entry) (module, method string) {
	module, ok := stem(e.Name)
	if !ok || c.whose[e.Name].Scheme != nil || !slices.Contains(integers, e.DType) || len(e.Shape) < 2 {
		return "", ""
	}
	has := func(suffix string) bool {
		_, ok := c.Entry(module + suffix)
		return ok
	}
	algorithm, _ := lookUp(c.Config.Quantization, "quant_algo").(string)
	if algorithm == "" {
		algorithm, _ = lookUp(c.Config.ModelOpt, "quantization", "quant_algo").(string)
	}
	switch {
	case e.DType == safetensors.U32 && has(".scales"):
		method = "MLX"
	case e.DType == safetensors.I8 && has(".weight_scales"):
		method = "EETQ"
	case c.Config.Method() == "modelopt" && algorithm != "":
		method = "ModelOpt " + algorithm
	case e.DType == safetensors.I8 && has(".weight_scale"):
		method = "compressed-tensors int-quantized"
	default:
		method = UnknownMethod
	}
	return module, method
}

// moduleMethod returns the method of the module that a tensor belongs to, "" for none. Biases are
// not quantized.
func moduleMethod(modules map[string]string, name string) string {
	for at := len(name); at > 0; at = strings.LastIndexByte(name[:at], '.') {
		if method := modules[name[:at]]; method != "" && name[at:] != ".bias" {
			return method
		}
	}
	return ""
}

// refuseUnread is an error for the first method that is not read, if there is one.
func (c *Checkpoint) refuseUnread() error {
	for _, u := range c.unread {
		switch {
		case u.Method == "":
		case len(u.Tensors) == 0:
			return sentinel.Errorf(ErrUnread, "%s: it declares %s, which is not read, and no tensor is quantized: "+
				"remove what it says of quantization if that is left over", ConfigName, u)
		case u.Contradicted:
			return sentinel.Errorf(ErrUnread, "%s: it declares %s, which is not read, and %d tensors, such as %q, "+
				"are quantized in another way: declare the method that they have", ConfigName, u, len(u.Tensors), u.Tensors[0])
		default:
			return sentinel.Errorf(ErrUnread, "%d tensors, such as %q, are quantized by %s, which is not read",
				len(u.Tensors), u.Tensors[0], u)
		}
	}
	return nil
}

// UnreadTensors counts the tensors of methods that are not read.
func UnreadTensors(list []Unread) (n int) {
	for _, u := range list {
		n += len(u.Tensors)
	}
	return n
}

// UnreadMethods names methods that are not read with the number of their tensors, such as
// "9 of GPTQ, 2 of HQQ".
func UnreadMethods(list []Unread) string {
	var texts []string
	for _, u := range list {
		texts = append(texts, fmt.Sprintf("%d of %s", len(u.Tensors), u))
	}
	return strings.Join(texts, ", ")
}
