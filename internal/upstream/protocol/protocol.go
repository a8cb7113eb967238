// Package protocol registers the types of repository. Each is described by a package of its own below internal/upstream.
package protocol

import (
	"slices"

	"tutti/internal/core"
	"tutti/internal/upstream"
	"tutti/internal/upstream/lyric"
	"tutti/internal/upstream/song"
)

// Types returns all types of repository.
func Types() []upstream.Type { return []upstream.Type{song.Type(), lyric.Type(), builtIn()} }

// builtIn returns the type of the built-in repository, whose records and settings are Song's.
func builtIn() upstream.Type {
	t := song.Type()
	t.Name, t.Topic, t.Open = core.TypeLocal, "", nil
	return t
}

// Of returns a type by its name, the first one for an unknown name.
func Of(name core.RepositoryType) upstream.Type {
	types := Types()
	return types[max(0, slices.IndexFunc(types, func(t upstream.Type) bool { return t.Name == name }))]
}
