package vectors

import (
	"context"
	"slices"
	"strings"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/oracle"
)

// gemmIndex is gemm.json.
type gemmIndex struct {
	Products []productCase `json:"products"`
}

type productCase struct {
	Name      string            `json:"name"`
	A         operand           `json:"a"`
	B         operand           `json:"b"`
	Bias      string            `json:"bias,omitempty"`
	Old       string            `json:"old,omitempty"`
	Canonical map[string]string `json:"canonical"`
	Exact     map[string]string `json:"exact"`
	Bound     string            `json:"bound"`
	Models    []prediction      `json:"models"`
}

type prediction struct {
	Model      string `json:"model"`
	Promote    int    `json:"promote"`
	ScaleOrder string `json:"scaleOrder"`
	Result     string `json:"result"`
	Bound      string `json:"bound"`
}

func makeGemm(ctx context.Context, seed uint64) (*tensors, any, error) {
	g := multiplier{tensors: &tensors{of: "gemm"}}
	products, err := makeProducts(ctx, seed)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range products {
		if err := g.product(ctx, p); err != nil {
			return nil, nil, err
		}
	}
	return g.tensors, g.index, nil
}

// multiplier gathers results of products.
type multiplier struct {
	*tensors
	index gemmIndex
}

// product adds the results of one product.
func (g *multiplier) product(ctx context.Context, p product) error {
	c := productCase{Name: p.name, A: g.operand(p.name+".a", p.a), B: g.operand(p.name+".b", p.b),
		Canonical: make(map[string]string), Exact: make(map[string]string)}
	m, _ := p.a.Dims()
	n, _ := p.b.Dims()
	if p.bias != nil {
		c.Bias = numbers(g.tensors, p.name+".bias", p.bias)
	}
	if p.old != nil {
		c.Old = numbers(g.tensors, p.name+".old", p.old, m, n)
	}
	for _, add := range []func(context.Context, *multiplier, product, *productCase) error{results[float32], results[fp8.BFloat16], results[float16.Float16]} {
		if err := add(ctx, g, p, &c); err != nil {
			return err
		}
	}
	bound := make([]float64, m*n)
	if err := oracle.Bound(ctx, bound, p.old, p.a, p.b, oracle.Accumulation{}, p.options()); err != nil {
		return err
	}
	c.Bound = numbers(g.tensors, p.name+".bound", bound, m, n)
	if err := g.predict(ctx, p, &c); err != nil {
		return err
	}
	g.index.Products = append(g.index.Products, c)
	return nil
}

// result is a type of C.
type result interface {
	gemm.Output
	number
}

// results adds canonical and exact results of a type.
func results[T result](ctx context.Context, g *multiplier, p product, c *productCase) error {
	m, _ := p.a.Dims()
	n, _ := p.b.Dims()
	kind := strings.ToLower(string(typeOf[T]()))
	old := make([]T, m*n)
	if p.old != nil {
		old = narrowed[T](p.old)
	}
	exact := slices.Clone(old)
	if err := oracle.Exact(ctx, exact, p.a, p.b, p.options()); err != nil {
		return err
	}
	canonical := slices.Clone(old)
	if err := gemm.Multiply(ctx, canonical, p.a, p.b, p.options()); err != nil {
		return err
	}
	c.Exact[kind] = numbers(g.tensors, p.name+".exact."+kind, exact, m, n)
	c.Canonical[kind] = numbers(g.tensors, p.name+".canonical."+kind, canonical, m, n)
	return nil
}

func narrowed[T result](x []float32) []T {
	y := make([]T, len(x))
	for i, v := range x {
		switch p := any(&y[i]).(type) {
		case *float32:
			*p = v
		case *fp8.BFloat16:
			*p = fp8.BFloat16FromFloat32(v)
		case *float16.Float16:
			*p = float16.Fromfloat32(v)
		}
	}
	return y
}

// predict adds what every GPU will say that takes the operands: with one chain
// for a block of K, and promoted within it.
func (g *multiplier) predict(ctx context.Context, p product, c *productCase) error {
	m, _ := p.a.Dims()
	n, k := p.b.Dims()
	c.Models = []prediction{}
	for _, model := range oracle.Models() {
		if (oracle.Kernel{Model: model}).CheckOperands(p.a, p.b) != nil {
			continue
		}
		for _, kernel := range []oracle.Kernel{
			{Model: model, Scales: oracle.AThenB},
			{Model: model, Scales: oracle.ProductThenFMA, Promote: 64},
		} {
			if kernel.Promote >= k {
				continue
			}
			result, bound := make([]float32, m*n), make([]float64, m*n)
			copy(result, p.old)
			if err := oracle.Predict(ctx, result, bound, p.a, p.b, kernel, p.options()); err != nil {
				return err
			}
			name := p.name + "." + model.Name
			if kernel.Promote > 0 {
				name += ".promoted"
			}
			c.Models = append(c.Models, prediction{model.Name, kernel.Promote, kernel.Scales.String(),
				numbers(g.tensors, name, result, m, n), numbers(g.tensors, name+".bound", bound, m, n)})
		}
	}
	return nil
}
