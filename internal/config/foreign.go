package config

import (
	"tutti/internal/base/setting"
	"tutti/internal/config/foreign"
)

// Foreign collects the keys that Load takes from the environments of other products (doc.go), to write them to a file.
type Foreign struct{ root *setting.Node }

// NewForeign returns a Foreign without keys.
func NewForeign() *Foreign { return &Foreign{root: setting.NewObject("")} }

// Maestro adds the keys that the environment of a Maestro sets, and returns warnings. The variables that it does not use are not among
// them.
func (f *Foreign) Maestro(environ []string) []string {
	warnings := foreign.Maestro(f.root, environ).Warnings
	return append(warnings, foreign.Exclusions(f.root, environ, &setting.ErrorList{})...)
}

// Arranger is like Maestro for the environment of an Arranger.
func (f *Foreign) Arranger(environ []string) []string {
	_, result := foreign.Arranger(f.root, environ)
	return result.Warnings
}

// Song is like Maestro for the environment of a Song's authentication.
func (f *Foreign) Song(environ []string) []string {
	var found setting.ErrorList
	warnings := foreign.Song(f.root, environ, &found).Warnings
	for _, err := range setting.Errors(found.Err()) {
		warnings = append(warnings, err.Message)
	}
	return warnings
}

// Set sets the key at path, such as server.listen, from the text of an environment variable.
func (f *Foreign) Set(path, text string) {
	var scratch Config
	setting.Overlay(f.root, []string{setting.Variable(path) + "=" + text}, scratch.keys(), &setting.ErrorList{})
}

// Keys returns the collected keys in the order of the file. The Source of a key that an environment set is "variable NAME".
func (f *Foreign) Keys() []setting.Leaf {
	var scratch Config
	return setting.Leaves(f.root, scratch.keys())
}
