package serve

import (
	"errors"
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/cmd/internal/verify"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/operands"
	"github.com/octavo-fp8/octavo/oracle/flash"
	judged "github.com/octavo-fp8/octavo/oracle/judge/attention"
	"github.com/octavo-fp8/octavo/safetensors"
)

// attentionClaim is a [judged.Claim] in JSON, but for the kernel, which has a name there.
type attentionClaim struct {
	Kernel     *flash.Kernel `json:"-"`
	P          *flash.Cast   `json:"p_format"`
	Offset     *float32      `json:"offset"`
	PScale     *float32      `json:"p_scale"`
	Threshold  *float32      `json:"threshold"`
	Tile       *int          `json:"tile"`
	Splits     *int          `json:"splits"`
	Descending *bool         `json:"descending"`
	Sums       string        `json:"sums"`
	Promote    int           `json:"promote"`
	Base2      bool          `json:"lse_base_2"`
	Bits       bool          `json:"bits"`
}

// attentionOptions are those of octavo verify attention.
type attentionOptions struct {
	attentionClaim
	Kernel   string            `json:"kernel"`
	QFormat  *fp8.Format       `json:"q_format"`
	QBlock   int               `json:"q_block"`
	KFormat  *fp8.Format       `json:"k_format"`
	KBlock   int               `json:"k_block"`
	VFormat  *fp8.Format       `json:"v_format"`
	VBlock   int               `json:"v_block"`
	ValueDim int               `json:"value_dim"`
	Layout   string            `json:"layout"`
	Scale    *float32          `json:"scale"`
	Causal   bool              `json:"causal"`
	Window   *attention.Window `json:"window"`
	Keys     int               `json:"keys"`
	Queries  int               `json:"queries"`
	Workers  int               `json:"workers"`
	Page     bool              `json:"page"`
}

// claim returns what is claimed.
func (o *attentionOptions) claim() (c judged.Claim, err error) {
	window := attention.Window{}
	if o.Window != nil {
		window = *o.Window
	}
	for _, n := range []struct {
		option  string
		n       *int
		atLeast int
	}{
		{"tile", o.Tile, 1}, {"splits", o.Splits, 1}, {"promote", &o.Promote, 0}, {"q_block", &o.QBlock, 0}, {"k_block", &o.KBlock, 0},
		{"v_block", &o.VBlock, 0}, {"value_dim", &o.ValueDim, 0}, {"keys", &o.Keys, 0},
		{"left of window", &window.Left, -1}, {"right of window", &window.Right, -1},
	} {
		if n.n != nil && (*n.n < n.atLeast || *n.n > math.MaxInt32) {
			return c, fmt.Errorf("%s is %d: want %d to %d", n.option, *n.n, n.atLeast, math.MaxInt32)
		}
	}
	c = judged.Claim(o.attentionClaim)
	if o.Kernel != "" {
		k, err := flash.ParseKernel(o.Kernel)
		if err != nil {
			return c, err
		}
		c.Kernel = &k
	}
	return c, nil
}

// checkAttention judges what a kernel of flash attention made of Q, K and V.
func checkAttention(c *call) (any, []safetensors.Tensor, error) {
	var o attentionOptions
	names := []string{"q", "q_scales", "k", "k_scales", "v", "v_scales", "out", "lse", "sinks", "cu_seqlens_q", "cu_seqlens_k", "seqlens_k", "block_table"}
	if err := c.read(&o, names...); err != nil {
		return nil, nil, err
	}
	claim, err := o.claim()
	if err != nil {
		return nil, nil, err
	}
	in, err := c.attention(&o)
	if err != nil {
		return nil, nil, err
	}
	source := &operands.Source{File: c.file}
	v, err := in.Judge(c.ctx, source, source, claim, judged.Options{Queries: o.Queries, Workers: o.Workers, Progress: c})
	if err != nil {
		return nil, nil, err
	}
	return report(v, v.Pass, v.Outcome, v.Title(), o.Page)
}

// attention says which arrays are what, as verify reads them from a file.
func (c *call) attention(o *attentionOptions) (*verify.Attention, error) {
	in := &verify.Attention{
		Q: verify.Array{Format: o.QFormat, Block: o.QBlock}, K: verify.Array{Format: o.KFormat, Block: o.KBlock},
		V: verify.Array{Format: o.VFormat, Block: o.VBlock}, ValueDim: o.ValueDim, Out: "out",
		Mask: attention.Mask{Causal: o.Causal, Window: o.Window}, Keys: o.Keys,
	}
	if o.Scale != nil {
		if in.Scale = *o.Scale; in.Scale <= 0 {
			return nil, fmt.Errorf("scale is %v: want a number above 0", in.Scale)
		}
	}
	switch o.Layout {
	case "", "bhsd":
	case "bshd":
		in.TokensFirst = true
	default:
		return nil, fmt.Errorf("there is no layout %q: want bhsd or bshd", o.Layout)
	}
	for _, t := range c.file.Tensors() {
		if t.DType == safetensors.U16 {
			return nil, fmt.Errorf("tensor %q is U16: say that it is bfloat16", t.Name)
		}
	}
	if _, err := c.find("out"); err != nil {
		return nil, err
	}
	for _, of := range []struct {
		name string
		*verify.Array
	}{{"q", &in.Q}, {"k", &in.K}, {"v", &in.V}} {
		name, x := of.name, of.Array
		if name == "v" && o.ValueDim > 0 {
			if c.has("v") || c.has("v_scales") || x.Format != nil || x.Block != 0 {
				return nil, errors.New("with value_dim V is of K: leave out v and what is said of it")
			}
			continue
		}
		info, err := c.find(name)
		if err != nil {
			return nil, err
		}
		x.Values = name
		if scales := name + "_scales"; info.DType != safetensors.BF16 || c.has(scales) {
			if _, err := c.find(scales); err != nil {
				return nil, err
			}
			x.Scales = scales
		}
	}
	for name, to := range map[string]*string{
		"sinks": &in.Sinks, "cu_seqlens_q": &in.Lengths.Queries, "cu_seqlens_k": &in.Lengths.Keys, "seqlens_k": &in.Used, "block_table": &in.Pages,
	} {
		if c.has(name) {
			*to = name
		}
	}
	if err := in.Check(); err != nil {
		return nil, err
	}
	return in, c.pages(in)
}

// pages returns an error unless there is room for the tokens of all pages, of which each may be
// that of many sequences.
func (c *call) pages(in *verify.Attention) error {
	pages, _ := c.file.Info(in.Pages)
	for _, name := range []string{in.K.Values, in.V.Values} {
		if x, _ := c.file.Info(name); in.Pages != "" && len(x.Shape) > 1 && x.Shape[0] > 0 {
			if err := c.room(int(pages.Len()), int(x.Len())/x.Shape[0], 8); err != nil {
				return fmt.Errorf("tensor %q of tensor %q: %w", pages.Name, name, err)
			}
		}
	}
	return nil
}
