package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/safetensors"
)

const suffix = ".safetensors"

// Entry is a tensor as it lies in one of a checkpoint's files.
type Entry struct {
	safetensors.Info
	File string // its name, relative to the checkpoint's directory
}

// Checkpoint is a model in one or several files. It may be read by several goroutines at
// once; Close must come after the others have returned. A directory must stay as it is
// while it is open.
type Checkpoint struct {
	// Config is what the model says of itself.
	Config Config

	// Index is the index that was followed; nil if there is none.
	Index *Index

	dir     string
	names   []string // of the files, in order
	files   map[string]*safetensors.File
	entries []Entry
	byName  map[string]int
	others  []string
	single  bool // one file was opened, which lies in that directory
	weights []*Weight
	whose   map[string]*Weight // by the name of a part or of the whole
	unread  []Unread
	foreign map[string]string // methods of tensors in unread, by their names
	modules map[string]string // and of modules that have such tensors
}

// Open opens the checkpoint at path: a safetensors file, a directory, or an index. Of a
// directory its index counts; where there is none, every safetensors file in it. Only
// headers are read. The caller must Close the checkpoint.
//
// It is an error, ErrIndex, if the index and the shards disagree in anything: a file that
// is absent, a tensor in another file than the index says, or one in a shard that the index
// does not name, which loaders read all the same. Safetensors files of a directory that the
// index leaves out are not opened: they are among [Checkpoint.Others].
func Open(path string) (*Checkpoint, error) {
	c, problems, err := OpenLenient(path)
	if err != nil {
		return nil, err
	}
	if len(problems) > 0 {
		c.Close()
		return nil, summary(problems)
	}
	return c, nil
}

// summary returns the first of several problems, and how many more there are.
func summary(problems []error) error {
	if more := len(problems) - 1; more > 0 {
		return fmt.Errorf("%w (and %d problems more)", problems[0], more)
	}
	return problems[0]
}

// OpenLenient is Open of a checkpoint that may be damaged: what is wrong is returned beside
// what can be read. A tensor that is in several files is read from the one that the index
// names, or else from the first. The error is for a path at which there is no checkpoint, and
// for one of which no file can be read: then the checkpoint is nil, and problems are all.
func OpenLenient(path string) (c *Checkpoint, problems []error, err error) {
	c = &Checkpoint{files: map[string]*safetensors.File{}, byName: map[string]int{}}
	if err := c.find(path); err != nil {
		return nil, nil, err
	}
	if c.Config, err = readConfig(c.dir); err != nil {
		problems = append(problems, err)
	}
	problems = append(problems, c.openFiles()...)
	if len(c.files) == 0 {
		return nil, problems, summary(problems)
	}
	problems = append(problems, c.collect()...)
	c.listOthers()
	c.join()
	c.findUnread()
	return c, problems, nil
}

// find sets the directory, the index and the names of the files.
func (c *Checkpoint) find(path string) error {
	stat, err := os.Stat(path)
	if err != nil {
		return err
	}
	index := ""
	switch {
	case stat.IsDir():
		c.dir = path
		if index, err = findIndex(path); err != nil {
			return err
		}
	case strings.HasSuffix(path, ".json"):
		c.dir, index = filepath.Dir(path), path
	default:
		c.dir, c.names = filepath.Dir(path), []string{filepath.Base(path)}
		c.single = true
		return nil
	}
	if index == "" {
		c.names, err = listFiles(path)
		return err
	}
	if c.Index, err = readIndex(index); err != nil {
		return err
	}
	if len(c.Index.Files) == 0 {
		return sentinel.Errorf(ErrIndex, "%s: it names no tensor", index)
	}
	c.names = slices.Compact(slices.Sorted(maps.Values(c.Index.Files)))
	return nil
}

// findIndex returns the path of the index of a directory, "" if it has none.
func findIndex(dir string) (string, error) {
	path := filepath.Join(dir, IndexName)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	others, err := filepath.Glob(filepath.Join(escapeGlob(dir), "*"+suffix+".index.json"))
	if err != nil || len(others) == 0 {
		return "", err
	}
	if len(others) > 1 {
		return "", sentinel.Errorf(ErrIndex, "%s: it has %d indexes, %s and %s among them: name one of them",
			dir, len(others), filepath.Base(others[0]), filepath.Base(others[1]))
	}
	return others[0], nil
}

var globs = strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`)

func escapeGlob(dir string) string { return globs.Replace(dir) }

// listFiles returns the safetensors files of a directory without an index.
func listFiles(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix) && !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	if len(names) == 0 {
		return nil, sentinel.Errorf(ErrIndex, "%s: it has no index and no %s file%s", dir, suffix, elsewhere(dir))
	}
	return names, nil
}

// elsewhere ends the sentence about a directory without files: it says which below it have some, down to
// where Hugging Face's cache has them. What cannot be read is left out.
func elsewhere(dir string) string {
	const most, deepest = 12, 3
	var below []string
	for depth := 1; depth <= deepest && len(below) == 0; depth++ {
		files, _ := filepath.Glob(filepath.Join(escapeGlob(dir), strings.Repeat("*/", depth)+"*"+suffix))
		for _, file := range files {
			if name, err := filepath.Rel(dir, filepath.Dir(file)); err == nil && !slices.Contains(below, name) {
				below = append(below, name)
			}
		}
	}
	if len(below) == 0 {
		return ""
	}
	text := "; directories in it that have: " + strings.Join(below[:min(most, len(below))], ", ")
	if n := len(below) - most; n > 0 {
		text += fmt.Sprintf(" and %d others", n)
	}
	return text
}

// openFiles opens the files, and keeps the names of those that could be.
func (c *Checkpoint) openFiles() (problems []error) {
	c.names = slices.DeleteFunc(c.names, func(name string) bool {
		file, err := safetensors.Open(filepath.Join(c.dir, filepath.FromSlash(name)))
		switch {
		case err != nil && c.Index != nil && errors.Is(err, fs.ErrNotExist):
			problems = append(problems, sentinel.Errorf(ErrIndex, "%s: the index names it, for tensor %q: %w",
				name, c.firstOf(name), err))
		case err != nil:
			problems = append(problems, err)
		default:
			c.files[name] = file
		}
		return err != nil
	})
	return problems
}

// firstOf returns the first tensor that the index has in a file.
func (c *Checkpoint) firstOf(file string) (first string) {
	for name, f := range c.Index.Files {
		if f == file && (first == "" || name < first) {
			first = name
		}
	}
	return first
}

// collect lists the tensors of all files, each from where it is to be read.
func (c *Checkpoint) collect() (problems []error) {
	for _, file := range c.names {
		for _, info := range c.files[file].Tensors() {
			if err := c.collectOne(Entry{info, file}); err != nil {
				problems = append(problems, err)
			}
		}
	}
	if c.Index == nil {
		return problems
	}
	for _, name := range slices.Sorted(maps.Keys(c.Index.Files)) {
		file := c.Index.Files[name]
		if _, open := c.files[file]; !open {
			continue // which has been said
		}
		if _, ok := c.files[file].Info(name); !ok {
			problems = append(problems, sentinel.Errorf(ErrIndex, "%s: it lacks tensor %q, which the index has in it",
				file, name))
		}
	}
	return problems
}

func (c *Checkpoint) collectOne(e Entry) error {
	var err error
	if c.Index != nil {
		switch file, ok := c.Index.Files[e.Name]; {
		case !ok:
			err = sentinel.Errorf(ErrIndex, "%s: tensor %q is not in the index; loaders read it all the same",
				e.File, e.Name)
		case file != e.File:
			return sentinel.Errorf(ErrIndex, "%s: tensor %q is here, and the index has it in %s",
				e.File, e.Name, file)
		}
	}
	if i, twice := c.byName[e.Name]; twice {
		return sentinel.Errorf(ErrIndex, "%s: tensor %q is in %s, too",
			e.File, e.Name, c.entries[i].File)
	}
	c.byName[e.Name] = len(c.entries)
	c.entries = append(c.entries, e)
	return err
}

// listOthers lists the files of the directory that are neither weights nor the index.
func (c *Checkpoint) listOthers() {
	entries, _ := os.ReadDir(c.dir) // of which a file was opened
	for _, e := range entries {
		name := e.Name()
		_, ours := c.files[name]
		stat, err := os.Stat(filepath.Join(c.dir, name)) // caches are full of links
		if ours || err != nil || !stat.Mode().IsRegular() || strings.HasSuffix(name, suffix+".index.json") {
			continue
		}
		c.others = append(c.others, name)
	}
}

// Close closes all files.
func (c *Checkpoint) Close() error {
	var errs []error
	for _, file := range c.files {
		errs = append(errs, file.Close())
	}
	return errors.Join(errs...)
}

// Dir returns the directory that the files are in.
func (c *Checkpoint) Dir() string { return c.dir }

// Files returns the names of the files, relative to Dir, in alphabetical order.
func (c *Checkpoint) Files() []string { return slices.Clone(c.names) }

// File returns an open file by its name, nil if there is none.
func (c *Checkpoint) File(name string) *safetensors.File { return c.files[name] }

// Others returns the names of the regular files beside those of weights and the index:
// config.json, what belongs to the tokenizer and to generation, and safetensors files that
// the index leaves out.
func (c *Checkpoint) Others() []string { return slices.Clone(c.others) }

// Entries returns all tensors as they are stored, file by file, in the order of the data.
func (c *Checkpoint) Entries() []Entry { return slices.Clone(c.entries) }

// Entry returns the stored tensor of the given name, and whether there is one.
func (c *Checkpoint) Entry(name string) (Entry, bool) {
	i, ok := c.byName[name]
	if !ok {
		return Entry{}, false
	}
	return c.entries[i], true
}

// TotalSize returns the number of bytes of all tensors' data: what an index calls
// total_size.
func (c *Checkpoint) TotalSize() (n int64) {
	for _, e := range c.entries {
		n += e.Bytes()
	}
	return n
}

// ReadBytes fills dst with the data of a stored tensor from byte off on, as
// [safetensors.File.ReadBytes] does. Errors name the file.
func (c *Checkpoint) ReadBytes(e Entry, off int64, dst []byte) error {
	if err := c.files[e.File].ReadBytes(e.Name, off, dst); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(c.dir, e.File), err)
	}
	return nil
}
