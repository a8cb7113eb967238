package definition_test

import (
	"fmt"
	"testing"

	"tutti/internal/search/catalogue/definition"
)

func TestGraphQLIntrospection(t *testing.T) {
	yes, no := new(true), new(false)
	for _, test := range []struct {
		// catalogue and server are disableGraphQLIntrospection.
		catalogue, server *bool
		production, on    bool
	}{
		{nil, nil, false, true},
		{nil, nil, true, false},
		{nil, no, false, true},
		{nil, no, true, true},
		{nil, yes, false, false},
		{nil, yes, true, false},
		{no, nil, false, true},
		{no, nil, true, true},
		{no, no, false, true},
		{no, no, true, true},
		{no, yes, false, false},
		{no, yes, true, false},
		{yes, nil, false, false},
		{yes, nil, true, false},
		{yes, no, false, false},
		{yes, no, true, false},
		{yes, yes, false, false},
		{yes, yes, true, false},
	} {
		name := fmt.Sprintf("catalogue %s, server %s, production %v", said(test.catalogue), said(test.server), test.production)
		t.Run(name, func(t *testing.T) {
			base := sound
			if test.catalogue != nil {
				base = sound[:len(sound)-1] + fmt.Sprintf(`, "disableGraphQLIntrospection": %v}`, *test.catalogue)
			}
			opts := definition.Options{DisableGraphQLIntrospection: test.server, Production: test.production}
			if d := load(t, files{"base.json": base}, opts).Definitions[0]; d.GraphQLIntrospection != test.on {
				t.Errorf("introspection %v, want %v", d.GraphQLIntrospection, test.on)
			}
			if test.catalogue != nil {
				return
			}
			if d := definition.Default([]definition.DefaultIndex{{Alias: "a"}}, opts).Definitions[0]; d.GraphQLIntrospection != test.on {
				t.Errorf("introspection of a default catalogue %v, want %v", d.GraphQLIntrospection, test.on)
			}
		})
	}
}

func said(word *bool) string {
	if word == nil {
		return "silent"
	}
	return fmt.Sprint(*word)
}
