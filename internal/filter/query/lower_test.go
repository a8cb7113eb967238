package query_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/filter/sqon"
)

func parsed(t *testing.T, text string) sqon.Filter {
	t.Helper()
	f, err := sqon.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Check(world{}); err != nil {
		t.Fatal(err)
	}
	return f
}

func someSets(_ context.Context, id string) ([]string, error) {
	switch id {
	case "mine":
		return []string{"S2", "*", "__missing__", "S1"}, nil
	case "numbers":
		return []string{"7", "x", "7.0"}, nil
	case "empty":
		return nil, nil
	case "slow":
		return nil, core.NewError(core.CodeUnavailable, "the store does not answer")
	default:
		return nil, core.NewError(core.CodeNotFound, "there is no saved set "+id)
	}
}

func TestLower(t *testing.T) {
	for _, c := range []struct{ name, filter, want string }{
		{"nothing asked", `{}`, "all"},
		{"in", `{"op":"in","content":{"fieldName":"studyId","value":["b","a","b"]}}`, "studyId['a' 'b']"},
		{"an alias is its target", `{"op":"in","content":{"fieldName":"study","value":"a"}}`, "studyId['a']"},
		{"an escape is itself", `{"op":"in","content":{"fieldName":"studyId","value":"A\\*02"}}`, "studyId['A*02']"},
		{"a pattern", `{"op":"in","content":{"fieldName":"studyId","value":["A*","b"]}}`, "or(studyId['b'], studyId['A*'])"},
		{"a text that no engine keeps", `{"op":"in","content":{"fieldName":"studyId","value":["` + strings.Repeat("x", 32_767) + `","b"]}}`, "studyId['b']"},
		{"not-in", `{"op":"not-in","content":{"fieldName":"studyId","value":"a"}}`, "not(studyId['a'])"},
		{"missing", `{"op":"in","content":{"fieldName":"studyId","value":"__missing__"}}`, "not(studyId?)"},
		{"not missing", `{"op":"not-in","content":{"fieldName":"studyId","value":"__missing__"}}`, "studyId?"},
		{"missing beside others", `{"op":"in","content":{"fieldName":"studyId","value":["__missing__","a"]}}`, "or(studyId['a'], not(studyId?))"},
		{"missing in elements", `{"op":"in","content":{"fieldName":"files.type","value":"__missing__"}}`, "not(some files(files.type?))"},
		{"missing of the element", `{"op":"and","pivot":"files","content":[{"op":"in","content":{"fieldName":"files.type","value":"__missing__"}}]}`, "some files(not(files.type?))"},
		{
			"missing below the element", `{"op":"and","pivot":"files","content":[{"op":"in","content":{"fieldName":"files.index.size","value":"__missing__"}}]}`,
			"some files(not(some files.index(files.index.size?)))",
		},
		{"all", `{"op":"all","content":{"fieldName":"files.type","value":["b","a"]}}`, "and(some files(files.type['b']), some files(files.type['a']))"},
		{"some-not-in of elements", `{"op":"some-not-in","content":{"fieldName":"files.type","value":"a"}}`, "some files(not(files.type['a']))"},
		{"some-not-in of documents", `{"op":"some-not-in","content":{"fieldName":"studyId","value":"a"}}`, "not(studyId['a'])"},
		{"a set", `{"op":"in","content":{"fieldName":"studyId","value":["set_id:mine","x"]}}`, "studyId['*' 'S1' 'S2' '__missing__' 'x']"},
		{"a set of numbers", `{"op":"in","content":{"fieldName":"age","value":["set_id:numbers"]}}`, "age['7']"},
		{"an empty set", `{"op":"in","content":{"fieldName":"studyId","value":["set_id:empty"]}}`, "nothing"},
		{"not in an empty set", `{"op":"not-in","content":{"fieldName":"studyId","value":["set_id:empty"]}}`, "all"},
		{"integers", `{"op":"in","content":{"fieldName":"age","value":["007",7.0,"0.7e1","+8","7.5",99999999999]}}`, "age['7' '8']"},
		{"fractions are rounded", `{"op":"in","content":{"fieldName":"weight","value":[0.1,"1e300",-0.0]}}`, "weight['0' '0.10000000149011612']"},
		{"booleans", `{"op":"in","content":{"fieldName":"ok","value":[true,"false"]}}`, "ok['false' 'true']"},
		{"keys of booleans' buckets", `{"op":"in","content":{"fieldName":"ok","value":["1",0]}}`, "ok['false' 'true']"},
		{"a pattern of booleans", `{"op":"wildcard","content":{"fieldNames":["ok"],"value":"T*"}}`, "ok['true']"},
		{"addresses", `{"op":"in","content":{"fieldName":"address","value":["::ffff:10.0.0.1","2001:DB8::1"]}}`, "address['10.0.0.1' '2001:db8::1']"},
		{"a pattern of addresses", `{"op":"wildcard","content":{"fieldNames":["address"],"value":"10.*"}}`, "address~['10.*']"},
		{"a day", `{"op":"in","content":{"fieldName":"at","value":"2024-03-05"}}`, "at[2024-03-05T00:00:00..2024-03-06T00:00:00)"},
		{"microseconds of a date", `{"op":"in","content":{"fieldName":"at","value":"2023-01-31T15:44:47.270418Z"}}`, "at[2023-01-31T15:44:47.27..2023-01-31T15:44:47.271)"},
		{"after microseconds of a date", `{"op":"gt","content":{"fieldName":"at","value":"1969-12-31T23:59:59.999999Z"}}`, "at[1970-01-01T00:00:00.."},
		{"milliseconds of a date_nanos", `{"op":"in","content":{"fieldName":"seen","value":"2023-01-31T15:44:47.270Z"}}`, "seen[2023-01-31T15:44:47.27..2023-01-31T15:44:47.270000001)"},
		{"a number of milliseconds of a date_nanos", `{"op":"in","content":{"fieldName":"seen","value":1675179887270}}`, "seen[2023-01-31T15:44:47.27..2023-01-31T15:44:47.271)"},
		{"after a month", `{"op":"gt","content":{"fieldName":"at","value":"2024-03"}}`, "at[2024-04-01T00:00:00.."},
		{"from a month", `{"op":"gte","content":{"fieldName":"at","value":"2024-03"}}`, "at[2024-03-01T00:00:00.."},
		{"before a month", `{"op":"lt","content":{"fieldName":"at","value":"2024-03"}}`, "at..2024-03-01T00:00:00)"},
		{"until a month", `{"op":"lte","content":{"fieldName":"at","value":"2024-03"}}`, "at..2024-04-01T00:00:00)"},
		{"between days", `{"op":"between","content":{"fieldName":"at","value":["2024-03-05","2024-03-06"]}}`, "at[2024-03-05T00:00:00..2024-03-07T00:00:00)"},
		{"ranges", `{"op":"gt","content":{"fieldName":"age","value":"+7"}}`, "age(7.."},
		{"between reversed days", `{"op":"between","content":{"fieldName":"at","value":["2024-03-06","2024-03-05"]}}`, "at[2024-03-05T00:00:00..2024-03-07T00:00:00)"},
		{"between a month and its year", `{"op":"between","content":{"fieldName":"at","value":["2024-03","2024"]}}`, "at[2024-03-01T00:00:00..2025-01-01T00:00:00)"},
		{"between a year and its month", `{"op":"between","content":{"fieldName":"at","value":["2024","2024-03"]}}`, "at[2024-01-01T00:00:00..2024-04-01T00:00:00)"},
		{"between reversed", `{"op":"between","content":{"fieldName":"files.size","value":[10,2.5]}}`, "some files(files.size[2.5..10])"},
		{"between reversed numerals", `{"op":"between","content":{"fieldName":"age","value":["1e1","-9007199254740993"]}}`, "age[-9007199254740993..1e1]"},
		{"between", `{"op":"between","content":{"fieldName":"files.size","value":[1,2.5]}}`, "some files(files.size[1..2.5])"},
		{
			"a wildcard of several fields", `{"op":"filter","content":{"fieldNames":["studyId","files.type","place"],"value":"a?c"}}`,
			"or(studyId~['a?c'], some files(files.type~['a?c']))",
		},
		{"a wildcard that contains", `{"op":"filter","content":{"fieldNames":["studyId"],"value":"ab"}}`, "studyId~['*ab*']"},
		{"a type that nothing equals", `{"op":"in","content":{"fieldName":"place","value":"x"}}`, "nothing"},
		{"an object", `{"op":"in","content":{"fieldName":"donor","value":["__missing__","x"]}}`, "not(or(donor.age?, donor.sex?))"},
		{"an object without fields", `{"op":"not-in","content":{"fieldName":"empty","value":"__missing__"}}`, "nothing"},
		{"elements", `{"op":"in","content":{"fieldName":"files","value":"__missing__"}}`, "not(some files(everything))"},
		{"an object of elements", `{"op":"not-in","content":{"fieldName":"files.info","value":"__missing__"}}`, "some files(files.info.note?)"},
		{
			"a pivot", `{"op":"and","pivot":"files","content":[{"op":"in","content":{"fieldName":"files.type","value":"a"}},{"op":"not","content":[{"op":"gt","content":{"fieldName":"files.index.size","value":5}}]}]}`,
			"some files(and(files.type['a'], not(some files.index(files.index.size(5..))))",
		},
		{
			"what a pivot does not bind", `{"op":"and","pivot":"files","content":[{"op":"in","content":{"fieldName":"files.type","value":"a"}},{"op":"in","content":{"fieldName":"donor.sex","value":"F"}}]}`,
			"and(donor.sex['F'], some files(files.type['a']))",
		},
		{"a pivot on a clause", `{"op":"not-in","pivot":"files.index","content":{"fieldName":"files.index.size","value":5}}`, "some files.index(not(files.index.size['5']))"},
		{"a pivot that asks for any element", `{"op":"and","pivot":"files","content":[]}`, "some files(everything)"},
		{"none of several", `{"op":"not","content":[{"op":"in","content":{"fieldName":"studyId","value":"a"}},{"op":"in","content":{"fieldName":"age","value":1}}]}`, "not(or(studyId['a'], age['1']))"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, err := query.Lower(t.Context(), parsed(t, c.filter), world{}, someSets)
			if err != nil {
				t.Fatal(err)
			}
			if got := show(n); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestLowerRefuses(t *testing.T) {
	in := func(value string) string {
		return `{"op":"and","content":[{"op":"in","content":{"fieldName":"studyId","value":["a","` + value + `"]}}]}`
	}
	t.Run("a set that is unknown", func(t *testing.T) {
		_, err := query.Lower(t.Context(), parsed(t, in("set_id:yours")), world{}, someSets)
		e, ok := errors.AsType[*core.Error](err)
		if !ok || e.Code != core.CodeInvalid || e.Message != "there is no saved set yours" || len(e.Violations) != 1 || e.Violations[0].Pointer != "/content/0/content/value" {
			t.Errorf("got %#v", err)
		}
	})
	t.Run("a store that does not answer", func(t *testing.T) {
		if _, err := query.Lower(t.Context(), parsed(t, in("set_id:slow")), world{}, someSets); core.CodeOf(err) != core.CodeUnavailable {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a pattern that is too long", func(t *testing.T) {
		for _, filter := range []string{
			in(strings.Repeat("*a", 501)), `{"op":"or","content":[{"op":"wildcard","content":{"fieldNames":["ok","studyId"],"value":"` + strings.Repeat("x", 999) + `"}}]}`,
		} {
			_, err := query.Lower(t.Context(), parsed(t, filter), world{}, nil)
			e, ok := errors.AsType[*core.Error](err)
			if !ok || e.Code != core.CodeInvalid || !strings.HasSuffix(e.Message, "bytes; the maximum is 1000") || len(e.Violations) != 1 ||
				!strings.HasSuffix(e.Violations[0].Pointer, "/content/value") {
				t.Errorf("got %#v", err)
			}
		}
	})
	t.Run("no sets at all", func(t *testing.T) {
		_, err := query.Lower(t.Context(), parsed(t, in("set_id:mine")), world{}, nil)
		if core.CodeOf(err) != core.CodeInvalid || core.MessageOf(err) != "sets cannot be used here" {
			t.Errorf("got %v", err)
		}
	})
}

func TestFacet(t *testing.T) {
	bam := `{"op":"in","content":{"fieldName":"files.type","value":"bam"}}`
	big := `{"op":"gt","content":{"fieldName":"files.size","value":5}}`
	female := `{"op":"in","content":{"fieldName":"donor.sex","value":"F"}}`
	study := `{"op":"in","content":{"fieldName":"study","value":"S"}}`
	anywhere := `{"op":"filter","content":{"fieldNames":["files.type","study"],"value":"x"}}`
	and := func(members string) string { return `{"op":"and","content":[` + members + `]}` }
	for _, c := range []struct {
		name, filter, field string
		themselves          bool
		documents, elements string
	}{
		{"no filter", `{}`, "studyId", false, "all", "all"},
		{"its own clause goes", and(study + "," + female), "studyId", false, "donor.sex['F']", "all"},
		{"also when it denies", `{"op":"not","content":[` + study + `]}`, "studyId", false, "all", "all"},
		{"also as one of alternatives of its own", `{"op":"or","content":[` + study + `,` + study + `]}`, "studyId", false, "all", "all"},
		{"but not as one of others", `{"op":"or","content":[` + study + `,` + female + `]}`, "studyId", false, "or(studyId['S'], donor.sex['F'])", "all"},
		{"it stays when it filters itself", and(study + "," + female), "studyId", true, "and(studyId['S'], donor.sex['F'])", "all"},
		{"a wildcard of several stays", `{"op":"filter","content":{"fieldNames":["studyId","donor.sex"],"value":"x"}}`, "studyId", false, "or(studyId~['*x*'], donor.sex~['*x*'])", "all"},
		{"siblings narrow elements", and(bam + "," + big + "," + female), "files.type", false, "and(some files(files.size(5..), donor.sex['F'])", "files.size(5.."},
		{"as a whole when it filters itself", and(bam + "," + big), "files.type", true, "and(some files(files.type['bam']), some files(files.size(5..))", "and(files.type['bam'], files.size(5..)"},
		{"other elements do not", and(bam), "samples.id", false, "some files(files.type['bam'])", "all"},
		{"nor those above", and(bam), "files.index.size", false, "some files(files.type['bam'])", "all"},
		{"a pivot on the path", `{"op":"or","pivot":"files","content":[` + bam + `,` + big + `]}`, "files.at", false, "some files(or(files.type['bam'], files.size(5..))", "or(files.type['bam'], files.size(5..)"},
		{"its own clause below a pivot", `{"op":"and","pivot":"files","content":[` + bam + `,` + big + `]}`, "files.type", false, "some files(files.size(5..)", "files.size(5.."},
		{"a pivot of which nothing is left", `{"op":"and","pivot":"files","content":[` + bam + `]}`, "files.type", false, "all", "all"},
		{"all asks no element for everything", `{"op":"all","content":{"fieldName":"files.type","value":["a","b"]}}`, "files.size", false, "and(some files(files.type['a']), some files(files.type['b']))", "files.type['a' 'b']"},
		{"but does below a pivot", `{"op":"all","pivot":"files","content":{"fieldName":"files.type","value":["a","b"]}}`, "files.size", false, "some files(and(files.type['a'], files.type['b']))", "and(files.type['a'], files.type['b'])"},
		{"all of nothing asks for nothing", `{"op":"all","content":{"fieldName":"files.type","value":[]}}`, "files.size", false, "all", "all"},
		{"a pivot with a wildcard beyond it", `{"op":"and","pivot":"files","content":[` + big + `,` + anywhere + `]}`, "files.at", false, "or(some files(and(files.size(5.., files.type~['*x*'])), and(studyId~['*x*'], some files(files.size(5..)))", "or(and(files.size(5.., files.type~['*x*']), files.size(5..)"},
		{"its own clause goes out of every alternative", `{"op":"and","pivot":"files","content":[` + big + `,` + anywhere + `]}`, "files.size", false, "or(some files(files.type~['*x*']), and(studyId~['*x*'], some files(everything)))", "all"},
		{"or only some alternatives narrow", `{"op":"or","pivot":"files","content":[` + big + `,` + study + `]}`, "files.at", false, "or(some files(files.size(5..), and(studyId['S'], some files(everything)))", "all"},
		{"alternatives that the filter has itself do not narrow", `{"op":"or","content":[{"op":"and","pivot":"files","content":[` + big + `]},{"op":"and","pivot":"files","content":[` + bam + `]}]}`, "files.at", false, "or(some files(files.size(5..), some files(files.type['bam']))", "all"},
		{"what is below or does not narrow elements", and(`{"op":"or","content":[` + bam + `,` + female + `]}`), "files.size", false, "or(some files(files.type['bam']), donor.sex['F'])", "all"},
	} {
		t.Run(c.name, func(t *testing.T) {
			of, err := query.Facet(t.Context(), parsed(t, c.filter), c.field, c.themselves, world{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			documents, elements := of.Documents, of.Elements
			if show(documents) != c.documents || show(elements) != c.elements {
				t.Errorf("got %s and %s, want %s and %s", show(documents), show(elements), c.documents, c.elements)
			}
		})
	}
}

// TestExactly checks that texts are not parsed as SQON values.
func TestExactly(t *testing.T) {
	field := func(name string) query.Field { f, _ := world{}.Lookup(name); return f }
	for _, c := range []struct {
		field string
		texts []string
		want  string
	}{
		{"studyId", []string{"*", "__missing__", "set_id:x", `a\*`}, `studyId['*' '__missing__' 'a\\*' 'set_id:x']`},
		{"studyId", nil, "nothing"},
		{"age", []string{"x", "7"}, "age['7']"},
		{"age", []string{"x"}, "nothing"},
		{"files.type", []string{"a"}, "some files(files.type['a'])"},
	} {
		if got := show(query.Exactly(field(c.field), c.texts)); got != c.want {
			t.Errorf("%s %q: got %s, want %s", c.field, c.texts, got, c.want)
		}
	}
}

func TestBoth(t *testing.T) {
	a, b, nothing, everything := query.Exactly(query.Field{Path: "a", Type: "keyword"}, []string{"1"}),
		query.Exactly(query.Field{Path: "b", Type: "keyword"}, []string{"2"}), &query.Node{Op: query.Nothing}, &query.Node{Op: query.Everything}
	for _, c := range []struct {
		a, b         *query.Node
		both, either string
	}{
		{nil, nil, "all", "all"},
		{a, nil, "a['1']", "all"},
		{nil, a, "a['1']", "all"},
		{everything, a, "a['1']", "all"},
		{a, b, "and(a['1'], b['2'])", "or(a['1'], b['2'])"},
		{nothing, b, "nothing", "b['2']"},
		{nothing, nil, "nothing", "all"},
		{nothing, nothing, "nothing", "nothing"},
	} {
		if both, either := show(query.Both(c.a, c.b)), show(query.Either(c.a, c.b)); both != c.both || either != c.either {
			t.Errorf("%s, %s: both %s, either %s", show(c.a), show(c.b), both, either)
		}
	}
}
