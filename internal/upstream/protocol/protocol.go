// Package protocol lists the types of repository. Each is implemented by a package below internal/upstream.
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

// EventFormats returns the formats of the events of all types.
func EventFormats() map[core.RepositoryType]core.EventFormat {
	formats := map[core.RepositoryType]core.EventFormat{}
	for _, t := range Types() {
		formats[t.Name] = t.Events
	}
	return formats
}

// builtIn returns the type of the built-in repository, whose records and settings are Song's.
func builtIn() upstream.Type {
	t := song.Type()
	t.Name, t.Topic, t.Open = core.TypeLocal, "", nil
	return t
}

// Of returns the type with a name, or Song's for a missing or unknown name: the configuration reports that name as an error, but
// validates the other keys of the repository too.
func Of(name core.RepositoryType) upstream.Type {
	types := Types()
	if i := slices.IndexFunc(types, func(t upstream.Type) bool { return t.Name == name }); i >= 0 {
		return types[i]
	}
	return song.Type()
}
