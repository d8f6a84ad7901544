package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// surface is what the public packages of a tree export, and who uses it.
type surface struct {
	names   map[string]bool            // "parallel/layers.Rank": exported at top level
	members map[string]bool            // "parallel/layers.Rank.Send": exported methods and fields
	refs    map[string]map[string]bool // what a declaration shows to who uses it
	used    map[string]bool            // names that another package or an example uses, and types that these show
	spoken  map[string]map[string]bool // identifier: the packages whose files have it
}

// public reports whether users can import a package, given by its folder.
func public(folder string) bool {
	first, _, _ := strings.Cut(folder, "/")
	return !slices.Contains(strings.Split(folder, "/"), "internal") &&
		!slices.Contains([]string{"cmd", "bench", "beam", "lab", "examples", "scripts", "python"}, first)
}

var (
	fence     = regexp.MustCompile("(?s)```go\n(.*?)```")
	qualified = regexp.MustCompile(`\b([a-z]\w*)\.([A-Z]\w*)`)
)

// surfaceOf reads all Go files of a tree, whatever their modules and build constraints,
// and the Go code in its Markdown files. It resolves names by imports alone.
func surfaceOf(tree fs.FS) (*surface, error) {
	s := &surface{map[string]bool{}, map[string]bool{}, map[string]map[string]bool{}, map[string]bool{}, map[string]map[string]bool{}}
	folders := map[string][]string{} // of a package's name
	var pages []string
	direct := map[string]bool{}
	err := fs.WalkDir(tree, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if name != "." && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, ".md") {
			return nil
		}
		text, err := fs.ReadFile(tree, file)
		if err != nil {
			return err
		}
		if strings.HasSuffix(name, ".md") {
			for _, code := range fence.FindAllStringSubmatch(string(text), -1) {
				pages = append(pages, code[1])
			}
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		folder := strings.TrimPrefix(path.Dir(file), ".")
		test := strings.HasSuffix(name, "_test.go")
		if !test && public(folder) && parsed.Name.Name != "main" {
			folders[parsed.Name.Name] = append(folders[parsed.Name.Name], folder)
			s.declare(folder, parsed)
		}
		// A package's own tests are no users, but its examples are.
		s.use(folder, parsed, !test || !strings.Contains(string(text), "\nfunc Example"), direct)
		return nil
	})
	for _, page := range pages {
		for _, found := range qualified.FindAllStringSubmatch(page, -1) {
			for _, folder := range folders[found[1]] {
				direct[folder+"."+found[2]] = true
			}
		}
	}
	for name := range direct {
		s.show(name)
	}
	return s, err
}

// show marks a name as used, and all that a user of it sees.
func (s *surface) show(name string) {
	if s.used[name] {
		return
	}
	s.used[name] = true
	for other := range s.refs[name] {
		if parts := strings.Split(other, "."); len(parts) < 3 || s.mentioned(parts[0], parts[2]) {
			s.show(other)
		}
	}
}

// mentioned reports whether files of other packages than the one in folder, or examples
// of that, have an identifier. A method or field that none of them has shows nothing.
func (s *surface) mentioned(folder, identifier string) bool {
	says := s.spoken[identifier]
	return len(says) > 1 || len(says) == 1 && !says[folder]
}

// use adds what a file names of other packages to direct. Without own, it also adds what
// it names of the package in its folder.
func (s *surface) use(folder string, file *ast.File, own bool, direct map[string]bool) {
	imported := map[string]string{}
	for _, spec := range file.Imports {
		full, _ := strconv.Unquote(spec.Path.Value)
		ours, ok := strings.CutPrefix(full, module)
		if ours = strings.TrimPrefix(ours, "/"); !ok || ours == folder && own {
			continue
		}
		name := path.Base(full)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		imported[name] = ours
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			if n.IsExported() {
				if s.spoken[n.Name] == nil {
					s.spoken[n.Name] = map[string]bool{}
				}
				if own {
					s.spoken[n.Name][folder] = true
				} else {
					s.spoken[n.Name][folder+" examples"] = true
				}
			}
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok {
				if ours, ok := imported[x.Name]; ok {
					direct[ours+"."+n.Sel.Name] = true
				}
			}
		}
		return true
	})
}

// declare adds the declarations of a file.
func (s *surface) declare(folder string, file *ast.File) {
	refer := func(from, to string) {
		from = folder + "." + from
		if s.refs[from] == nil {
			s.refs[from] = map[string]bool{}
		}
		s.refs[from][folder+"."+to] = true
	}
	name := func(id *ast.Ident) {
		if id.IsExported() {
			s.names[folder+"."+id.Name] = true
		}
	}
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			from := decl.Name.Name
			if decl.Recv == nil {
				name(decl.Name)
			} else {
				if !decl.Name.IsExported() {
					continue
				}
				of := receiver(decl.Recv.List[0].Type)
				from = of + "." + decl.Name.Name
				s.members[folder+"."+from] = true
				refer(of, from)
			}
			mention(decl.Type, func(to string) { refer(from, to) })
		case *ast.GenDecl:
			var last *ast.ValueSpec
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					name(spec.Name)
					shown := func(to string) { refer(spec.Name.Name, to) }
					if spec.TypeParams != nil {
						for _, field := range spec.TypeParams.List {
							mention(field.Type, shown)
						}
					}
					fields, ok := spec.Type.(*ast.StructType)
					if !ok {
						mention(spec.Type, shown)
						continue
					}
					for _, field := range fields.Fields.List {
						if len(field.Names) == 0 {
							mention(field.Type, shown)
						}
						for _, id := range field.Names {
							if id.IsExported() {
								member := spec.Name.Name + "." + id.Name
								s.members[folder+"."+member] = true
								refer(spec.Name.Name, member)
								mention(field.Type, func(to string) { refer(member, to) })
							}
						}
					}
				case *ast.ValueSpec:
					if decl.Tok == token.VAR || last == nil || spec.Type != nil || len(spec.Values) > 0 {
						last = spec
					}
					for _, id := range spec.Names {
						name(id)
						typeOf(last, func(to string) { refer(id.Name, to) })
					}
				}
			}
		}
	}
}

// receiver returns the name of a method's type.
func receiver(expr ast.Expr) string {
	switch expr := expr.(type) {
	case *ast.StarExpr:
		return receiver(expr.X)
	case *ast.IndexExpr:
		return receiver(expr.X)
	case *ast.IndexListExpr:
		return receiver(expr.X)
	case *ast.Ident:
		return expr.Name
	}
	return ""
}

// mention calls found with each name of its own package that a type shows: not those of
// unexported fields.
func mention(expr ast.Node, found func(string)) {
	ast.Inspect(expr, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			return false
		case *ast.Field:
			if len(n.Names) == 0 || slices.ContainsFunc(n.Names, (*ast.Ident).IsExported) {
				mention(n.Type, found)
			}
			return false
		case *ast.FuncType:
			for _, list := range []*ast.FieldList{n.TypeParams, n.Params, n.Results} {
				if list != nil {
					for _, field := range list.List {
						mention(field.Type, found)
					}
				}
			}
			return false
		case *ast.Ident:
			found(n.Name)
		}
		return true
	})
}

// typeOf calls found with the names in the type of a constant or variable: of its
// declaration, or of the literals, conversions and calls that give it its value.
func typeOf(spec *ast.ValueSpec, found func(string)) {
	if spec.Type != nil {
		mention(spec.Type, found)
		return
	}
	for _, value := range spec.Values {
		ast.Inspect(value, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				if n.Type != nil {
					mention(n.Type, found)
				}
				return false
			case *ast.CallExpr:
				mention(n.Fun, found)
				return false
			}
			return true
		})
	}
}

// kept reads a list of names that are exported although nothing in the tree uses them:
// a name and the reason, one a line.
func kept(text string) (map[string]string, error) {
	list := map[string]string{}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, reason, _ := strings.Cut(line, " ")
		if reason = strings.TrimSpace(reason); reason == "" || list[name] != "" {
			return nil, &fs.PathError{Op: "line without a reason or twice", Path: name, Err: fs.ErrInvalid}
		}
		list[name] = reason
	}
	return list, nil
}

// idle returns what is wrong: names that nobody uses and the list does not have, and lines
// of the list that have no such name.
func (s *surface) idle(list map[string]string) (wrong []string) {
	for _, name := range slices.Sorted(maps.Keys(s.names)) {
		if !s.used[name] && list[name] == "" {
			wrong = append(wrong, name+" is exported, but no other package uses it")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if !s.names[name] {
			wrong = append(wrong, name+" is in the list, but is not exported")
		} else if s.used[name] {
			wrong = append(wrong, name+" is in the list, but is used")
		}
	}
	return wrong
}

// TestExported: a name is exported because another package, command, benchmark, example,
// test of another package or page uses it, or for a reason that exported.txt states. With
// -v it logs, by package, how many names there are and how many of these nobody uses, and
// methods and fields that no other package mentions.
func TestExported(t *testing.T) {
	s, err := surfaceOf(os.DirFS(root))
	require.NoError(t, err)
	text, err := os.ReadFile("exported.txt")
	require.NoError(t, err)
	list, err := kept(string(text))
	require.NoError(t, err)
	for _, wrong := range s.idle(list) {
		t.Error(wrong)
	}
	total, unused, silent := map[string]int{}, map[string]int{}, map[string][]string{}
	for name := range s.names {
		folder := name[:strings.LastIndex(name, ".")]
		total[folder]++
		if !s.used[name] {
			unused[folder]++
		}
	}
	for member := range s.members {
		parts := strings.Split(member, ".")
		if s.names[parts[0]+"."+parts[1]] && !s.mentioned(parts[0], parts[2]) {
			silent[parts[0]] = append(silent[parts[0]], parts[1]+"."+parts[2])
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(total)) {
		slices.Sort(silent[folder])
		t.Logf("%-20s %4d exported, %3d of them unused; members that only it mentions: %s", folder, total[folder], unused[folder], strings.Join(silent[folder], " "))
	}
	t.Logf("%d names are exported", len(s.names))
}

func TestSurface(t *testing.T) {
	s, err := surfaceOf(fstest.MapFS{
		"a/a.go": {Data: []byte(`package a
type Shown struct { Field Seen; Other Lost; hidden Unseen }
type Seen int
type Unseen int
type Kind uint8
const ( One Kind = iota; Two )
const Loose = 1
var Default = Options{}
type Options struct{}
func (Options) Made() Result { return 0 }
type Result int
func (Options) Quiet() Silent { return 0 }
type Silent int
func Called() inner { return inner{} }
type inner struct{}
func (*inner) Deep() Found { return 0 }
func (*inner) deep() Lost { return 0 }
type Found int
type Lost int
func Generic[T Bound]() {}
type Bound interface{ ~int }
func Shouted() {}
func Documented() {}
func Written() {}
`)},
		"a/a_test.go":       {Data: []byte("package a_test\nimport \"" + module + "/a\"\nfunc TestA() { a.Shouted() }")},
		"a/example_test.go": {Data: []byte("package a_test\nimport \"" + module + "/a\"\nfunc Example() { a.Documented() }")},
		"README.md":         {Data: []byte("a.Loose\n```go\na.Written()\n```\n")},
		"cmd/x/main.go": {Data: []byte("package main\nimport other \"" + module + "/a\"\nimport a \"else/a\"\n" +
			"func main() { _ = other.Shown{}.Field; _ = other.One; _ = other.Default.Made(); other.Called().Deep(); other.Generic(); a.Loose() }\nfunc Exported() {}")},
		"internal/b/b.go": {Data: []byte("package b\nfunc Exported() {}")},
	})
	require.NoError(t, err)
	require.Len(t, s.names, 19)
	list, err := kept("# why\n\na.Unseen  for users\na.Loose  it was used once, nowhere now\na.Two  users compare\na.One  no\na.Gone  no\n")
	require.NoError(t, err)
	require.Equal(t, []string{
		"a.Lost is exported, but no other package uses it",
		"a.Shouted is exported, but no other package uses it",
		"a.Silent is exported, but no other package uses it",
		"a.Gone is in the list, but is not exported",
		"a.One is in the list, but is used",
	}, s.idle(list))
	_, err = kept("a.Loose\n")
	require.ErrorContains(t, err, "a.Loose")
}
