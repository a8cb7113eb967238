package schema_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/vektah/gqlparser/v2/ast"
	"pgregory.net/rapid"

	"tutti/internal/core"
	"tutti/internal/filter/fieldtype"
	"tutti/internal/index/document"
	"tutti/internal/index/mapping"
	"tutti/internal/search/catalogue"
	"tutti/internal/search/catalogue/definition"
	"tutti/internal/search/graphql/schema"
)

// render returns the mapping of a tree.
func render(t testing.TB, tree *mapping.Field) string {
	t.Helper()
	raw, err := tree.Render()
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// lyric is the mapping of tabular records with two entities.
func lyric(t testing.TB) string {
	t.Helper()
	grown, _, err := document.Grow(mapping.Lyric(), nil, []byte(`{"data":{"donor_id":"D1","age at diagnosis":61,"is_dead":false,
		"specimens":[{"specimen_id":"S1","collected":"2020-01-02","samples":[{"sample_id":"A1","mass":1.5}]}]},
		"entityName":"donor","isValid":true,"organization":"O","systemId":"X"}`))
	if err != nil {
		t.Fatal(err)
	}
	return render(t, grown)
}

// isArray is what a configuration says of lists.
func isArray(names ...string) []definition.ExtendedField {
	out := make([]definition.ExtendedField, len(names))
	for i, name := range names {
		out[i] = definition.ExtendedField{FieldName: name, IsArray: new(true)}
	}
	return out
}

const (
	deep = `{"properties":{"a":{"type":"nested","properties":{"id":{"type":"keyword"},"b":{"type":"nested","properties":{
		"plain":{"properties":{"c":{"type":"nested","properties":{"value":{"type":"double"}}},"x":{"type":"long"}}}}}}}}}`
	odd = `{"properties":{"ca19-9_level":{"type":"float"},"ca19_9_level":{"type":"float"},"ca19 9 level":{"type":"float"},
		"ca19_9_level_2":{"type":"keyword"},"1st":{"type":"keyword"},"_1st":{"type":"keyword"},"__private":{"type":"keyword"},"_private":{"type":"keyword"},
		"ünïcode 🧬":{"type":"keyword"},"a__b":{"type":"keyword"},"a":{"properties":{"b":{"type":"keyword"},"b-c":{"type":"keyword"},"b_c":{"type":"keyword"}}},
		"id":{"type":"keyword"},"score":{"type":"double"},"__":{"type":"keyword"},"type":{"type":"keyword"},"true":{"type":"boolean"},
		"file":{"properties":{"x":{"type":"keyword"}}},"File":{"properties":{"x":{"type":"keyword"}}},
		"node":{"properties":{"x":{"type":"keyword"}}},"some-object":{"properties":{"-":{"type":"keyword"}}},
		"aggregations":{"type":"nested","properties":{"node":{"properties":{"x":{"type":"keyword"}}},"edge":{"type":"nested","properties":{"id":{"type":"keyword"},"x":{"type":"keyword"}}}}}}}`
	empties = `{"properties":{"o":{"type":"object"},"n":{"type":"nested"},"disabled":{"type":"object","enabled":false},
		"onlyAlias":{"properties":{"k":{"type":"alias","path":"key"}}},"nestedAlias":{"type":"nested","properties":{"in":{"properties":{}}}},"key":{"type":"keyword"}}}`
)

// everyType has a field of every type, with what some of them need, and of two that are not known.
func everyType() string {
	types := append(fieldtype.Names(func(t *fieldtype.Type) bool {
		return t.Group != fieldtype.Container && t.Group != fieldtype.Scaled && t.Name != "alias"
	}), "icu_collation_keyword", "unheard_of")
	var b strings.Builder
	b.WriteString(`{"runtime":{"computed":{"type":"long"},"where":{"type":"geo_point"}},"properties":{`)
	for _, name := range types {
		fmt.Fprintf(&b, `"a_%s":{"type":%q},`, name, name)
	}
	b.WriteString(`"scaled":{"type":"scaled_float","scaling_factor":10},"list":{"type":"keyword"},"numbers":{"type":"long"},"things":{"type":"flattened"},
		"people":{"properties":{"name":{"type":"text","fields":{"raw":{"type":"keyword"},"length":{"type":"token_count","analyzer":"standard"}}}}},
		"other":{"type":"alias","path":"list"},"lost":{"type":"alias","path":"nowhere"},"below":{"type":"keyword","properties":{"it":{"type":"long"}}}}}`)
	return b.String()
}

func TestBuildGolden(t *testing.T) {
	described := []definition.ExtendedField{
		{FieldName: "studyId", Description: "The \"study\" of it,\nC:\\path\t\u0001 – 日本 🧬 \"\"\" #"},
		{FieldName: "files.fileSize", Description: "In bytes.", Unit: "B"},
		{FieldName: "files__fileType", Description: "By its name's end."},
		{FieldName: "analysisType", Description: "What kind of analysis it is."},
		{FieldName: "files", Description: "Its files."},
	}
	for _, tt := range []struct {
		name       string
		definition definition.Definition
		mapping    string
		options    schema.Options
	}{
		{"song", definition.Definition{Extended: described}, file(t, "song.json"), schema.Options{}},
		{"lyric", definition.Definition{DocumentType: "record"}, lyric(t), schema.Options{}},
		{"prefix", definition.Definition{DocumentType: "donor", NestingPrefix: "data", Extended: []definition.ExtendedField{
			{FieldName: "donor_id", Description: "The donor."},
		}}, lyric(t), schema.Options{}},
		{"deep", definition.Definition{}, deep, schema.Options{}},
		{"odd", definition.Definition{DocumentType: "odd type"}, odd, schema.Options{}},
		{"types", definition.Definition{Extended: isArray("list", "numbers", "things", "people", "people.name")}, everyType(), schema.Options{}},
		{"empty", definition.Definition{Extended: isArray("o")}, empties, schema.Options{}},
		{"network", definition.Definition{}, `{"properties":{"k":{"type":"keyword"},"n":{"properties":{"d":{"type":"date"}}}}}`, schema.Options{
			Network: true,
			Remote: map[string]string{
				"k": "NumericAggregations", "theirs": "Aggregations", "age": "NumericAggregations", "__typename": "Aggregations",
				"no name": "Aggregations", "odd": "JSON", "": "Aggregations",
			},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := built(t, tt.definition, tt.mapping, tt.options)
			if tt.definition.NestingPrefix == "" {
				golden(t, tt.name+".json", tt.mapping)
			}
			golden(t, tt.name+".graphql", catalogueText(t, s))
			if again := built(t, tt.definition, tt.mapping, tt.options); again.Text != s.Text {
				t.Error("another text of the same mapping")
			}
			consistent(t, s)
		})
	}
}

// catalogueText returns the catalogue's part of the text, before fixed.graphql.
func catalogueText(t *testing.T, s *schema.Schema) string {
	t.Helper()
	fixed, err := os.ReadFile("fixed.graphql")
	if err != nil {
		t.Fatal(err)
	}
	own, found := strings.CutSuffix(s.Text, string(fixed))
	if !found {
		t.Fatalf("the part that all schemas have is not there:\n%s", s.Text)
	}
	return own
}

// checked is a test of either kind.
type checked interface {
	Helper()
	Errorf(format string, args ...any)
}

// onlyNeverNull fails if a field is non-null that may have no value: a response has no null in its place to propagate (GraphQL
// specification, section 6.4.4).
func onlyNeverNull(t checked, d *ast.Definition) {
	t.Helper()
	if d.Kind != ast.Object || strings.HasPrefix(d.Name, "__") { // introspection has its own writer
		return
	}
	for _, f := range d.Fields {
		item := f.Type.Elem != nil && f.Type.Elem.NonNull
		if (f.Type.NonNull && f.Name != "id" && f.Name != "total" || item) && !strings.HasPrefix(f.Name, "__") {
			t.Errorf("%s.%s is of type %s", d.Name, f.Name, f.Type)
		}
	}
}

// consistent fails unless what leads from a schema to documents fits its tree.
func consistent(t checked, s *schema.Schema) {
	t.Helper()
	reached := map[string]bool{}
	for name, d := range s.AST.Types {
		onlyNeverNull(t, d)
		o, is := s.Objects[name]
		if !is {
			continue
		}
		seen := map[string]string{}
		for _, f := range d.Fields {
			if o.Name == "" && (f.Name == "id" || f.Name == "score") {
				continue
			}
			m, known := o.Members[f.Name]
			if !known {
				t.Errorf("%s.%s leads nowhere", name, f.Name)
				continue
			}
			if before, twice := seen[m.Key]; twice {
				t.Errorf("%s and %s of %s are both %q", before, f.Name, name, m.Key)
			}
			seen[m.Key] = f.Name
			follows(t, s, m, f)
			reached[m.Type], reached[m.Node] = true, true
		}
		if len(seen) != len(o.Members) {
			t.Errorf("%s has %d of %d members", name, len(seen), len(o.Members))
		}
	}
	for name := range s.AST.Types {
		if _, is := s.Objects[name]; is && !reached[name] && name != s.Document+"Node" {
			t.Errorf("nothing leads to %s", name)
		}
	}
	leads(t, s)
}

// follows fails unless a member matches its field.
func follows(t checked, s *schema.Schema, m schema.Member, f *ast.FieldDefinition) {
	t.Helper()
	if f.Type.Name() != m.Type || (f.Type.Elem != nil) != m.List || f.Type.NonNull {
		t.Errorf("%q is %+v and of type %s", m.Name, m, f.Type)
	}
	_, plain := s.Objects[m.Type]
	_, node := s.Objects[m.Node]
	switch m.Kind {
	case schema.Scalar:
		if s.AST.Types[m.Type].Kind != ast.Scalar || m.Node != "" {
			t.Errorf("%q is no scalar: %+v", m.Name, m)
		}
	case schema.Plain:
		if !plain || m.Node != "" {
			t.Errorf("%q is no object: %+v", m.Name, m)
		}
	case schema.Connection:
		connection := s.AST.Types[m.Type].Fields.ForName("hits").Type.Name()
		edge := s.AST.Types[connection].Fields.ForName("edges").Type.Name()
		if got := s.AST.Types[edge].Fields.ForName("node").Type.Name(); plain || !node || got != m.Node || m.List {
			t.Errorf("%q is no connection to %s: %+v", m.Name, got, m)
		}
	}
}

// leads fails unless each aggregation refers to a different field.
func leads(t checked, s *schema.Schema) {
	t.Helper()
	d := s.AST.Types[s.Document+"Aggregations"]
	if d == nil {
		return
	}
	about := map[string]bool{}
	for _, f := range d.Fields {
		name, known := s.Aggregated[f.Name]
		if !known || about[name] {
			t.Errorf("%s is about %q", f.Name, name)
		}
		about[name] = true
	}
	if name, known := s.Aggregated["nothing of that name"]; known {
		t.Errorf("an unknown aggregation is about %q", name)
	}
}

func TestObject(t *testing.T) {
	s := built(t, definition.Definition{Extended: isArray("people", "studyIds")}, `{"properties":{"studyIds":{"type":"keyword"},
		"people":{"properties":{"age-at":{"type":"long"}}},"none":{"type":"nested"},
		"files":{"type":"nested","properties":{"id":{"type":"keyword"},"chunks":{"type":"nested","properties":{"size":{"type":"long"}}}}}}}`)
	for name, want := range map[string]*schema.Object{
		"analysisNode": {Members: map[string]schema.Member{
			"studyIds": {Key: "studyIds", Name: "studyIds", Type: "String", List: true},
			"people":   {Key: "people", Name: "people", Kind: schema.Plain, Type: "analysisPeople", List: true},
			"files":    {Key: "files", Name: "files", Kind: schema.Connection, Type: "analysisFiles", Node: "analysisFilesNode"},
			"none":     {Key: "none", Name: "none", Type: "JSON", List: true},
		}},
		"analysisPeople": {Name: "people", Members: map[string]schema.Member{"age_at": {Key: "age-at", Name: "people.age-at", Type: "Float"}}},
		"analysisFilesNode": {Name: "files", Members: map[string]schema.Member{
			"id":     {Key: "id", Name: "files.id", Type: "String"},
			"chunks": {Key: "chunks", Name: "files.chunks", Kind: schema.Connection, Type: "analysisFilesChunks", Node: "analysisFilesChunksNode"},
		}},
		"analysisFilesChunksNode": {Name: "files.chunks", Members: map[string]schema.Member{"size": {Key: "size", Name: "files.chunks.size", Type: "Float"}}},
		"analysisFiles":           nil,
		"analysis":                nil,
		"setsNode":                nil,
		"JSON":                    nil,
		"":                        nil,
	} {
		t.Run(name, func(t *testing.T) {
			got, is := s.Objects[name]
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || is != (want != nil) {
				t.Errorf("%t (-want +got):\n%s", is, diff)
			}
		})
	}
}

// TestOddNames: valid names are kept, and each name leads to its field. Those that do not follow from the fields' names are said.
func TestOddNames(t *testing.T) {
	s := built(t, definition.Definition{DocumentType: "odd type"}, odd)
	names := s.OddNames()
	for field, want := range map[string]core.GraphQLNames{
		"ca19-9_level": {Field: "ca19_9_level_4", Aggregation: "ca19_9_level_4"}, "1st": {Field: "_1st_2", Aggregation: "_1st_2"},
		"a.b": {Field: "a.b", Aggregation: "a__b_2"}, "a.b-c": {Field: "a.b_c_2", Aggregation: "a__b_c_2"},
		"id": {Field: "id_2", Aggregation: "id"}, "some-object": {Field: "some_object"}, "some-object.-": {Field: "some_object._", Aggregation: "some_object___"},
		"aggregations.edge.id": {}, "file.x": {}, "a.b_c": {}, "a__b": {}, "type": {}, "true": {}, "a": {}, "aggregations.edge": {},
	} {
		if got := names[field]; got != want {
			t.Errorf("%s has the GraphQL names %+v, want %+v", field, got, want)
		}
	}
	nested := built(t, definition.Definition{DocumentType: "d"}, `{"properties":{"f-s":{"type":"nested","properties":{"b":{"properties":{"c d":{"type":"keyword"}}}}}}}`)
	if diff := cmp.Diff(map[string]core.GraphQLNames{
		"f-s": {Field: "f_s"}, "f-s.b": {Field: "f_s.b"}, "f-s.b.c d": {Field: "f_s.b.c_d", Aggregation: "f_s__b__c_d"},
	}, nested.OddNames()); diff != "" {
		t.Errorf("names in nested elements (-want +got):\n%s", diff)
	}
	node, _ := s.Objects["odd_typeNode"]
	for name, want := range map[string]string{
		"ca19_9_level": "ca19_9_level", "ca19_9_level_3": "ca19 9 level", "ca19_9_level_4": "ca19-9_level", "ca19_9_level_2": "ca19_9_level_2",
		"_1st": "_1st", "_1st_2": "1st", "_private": "_private", "_private_2": "__private", "_n_code__": "ünïcode 🧬", "_": "__",
		"id_2": "id", "score_2": "score", "type": "type", "true": "true",
	} {
		if got := node.Members[name]; got.Name != want || got.Key != want {
			t.Errorf("%s is %+v, want %q", name, got, want)
		}
	}
	for name, want := range map[string]string{
		"a__b": "a__b", "a__b_2": "a.b", "a__b_c": "a.b_c", "a__b_c_2": "a.b-c", "id": "id", "score": "score", "ca19_9_level": "ca19_9_level",
		"some_object___": "some-object.-",
	} {
		if got, known := s.Aggregated[name]; got != want || !known {
			t.Errorf("the aggregation %s is about %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]string{
		"odd_typeFile": "File", "odd_typeFile_2": "file", "odd_typeNode_2": "node", "odd_typeAggregations_2Node_2": "aggregations.node",
	} {
		if got, is := s.Objects[name]; !is || got.Name != want {
			t.Errorf("%s is %+v, want %q", name, got, want)
		}
	}
}

func TestDocumentTypes(t *testing.T) {
	const why = "; choose another name"
	for documentType, want := range map[string]string{
		"Query": "", "Subscription": "", "Set": `the documentType "Set" cannot be used: the type Set is reserved` + why,
		"Sort": `the documentType "Sort" cannot be used: the type Sort is reserved` + why,
		"JSON": `the documentType "JSON" cannot be used: the type JSON is reserved` + why, "json": "",
		"String":   `the documentType "String" cannot be used: the type String is reserved` + why,
		"Root":     `the documentType "Root" cannot be used: the type Root is reserved` + why,
		"Mutation": `the documentType "Mutation" cannot be used: the type Mutation is reserved` + why,
		"Numeric":  `the documentType "Numeric" cannot be used: the type NumericAggregations is reserved` + why,
		"Network":  `the documentType "Network" cannot be used: the type Network is reserved` + why,
		"sets":     `the documentType "sets" cannot be used: it is a reserved field of every GraphQL endpoint` + why,
		"network":  `the documentType "network" cannot be used: it is a reserved field of every GraphQL endpoint` + why,
		"true":     `the documentType "true" cannot be used: it is a reserved word in GraphQL` + why,
		"null":     `the documentType "null" cannot be used: it is a reserved word in GraphQL` + why,
		"__file":   `the documentType "__file" cannot be used: it would begin with __ in GraphQL, which reserves such names` + why,
		"--":       `the documentType "--" cannot be used: it would begin with __ in GraphQL, which reserves such names` + why,
		"1st file": "", "é": "", "hasValidConfig": "", "type": "", "String!": "", "file": "", "enum": "",
	} {
		t.Run(documentType, func(t *testing.T) {
			d := definition.Definition{DocumentType: documentType}
			for _, options := range []schema.Options{{}, {Network: true}} {
				s, err := schema.Build(model(t, d, deep), options)
				if want != "" {
					if core.CodeOf(err) != core.CodeInvalid || core.MessageOf(err) != want || s != nil {
						t.Errorf("%v, %v, want %q", s, err, want)
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				if f := s.AST.Query.Fields.ForName(s.Document); f == nil || f.Type.Name() != s.Document || s.AST.Query.Name != "Root" {
					t.Errorf("the root has no field of the type %q", s.Document)
				}
				consistent(t, s)
			}
		})
	}
}

// TestNothingToAggregate: a GraphQL type must have fields.
func TestNothingToAggregate(t *testing.T) {
	s := built(t, definition.Definition{NestingPrefix: "data"}, render(t, mapping.Lyric()), schema.Options{Network: true})
	for _, name := range []string{"analysisAggregations", "NodeAggregations"} {
		if d := s.AST.Types[name]; d != nil {
			t.Errorf("%s is there, with %d fields", name, len(d.Fields))
		}
	}
	for typeName, field := range map[string]string{"analysis": "aggregations", "Network": "aggregations"} {
		if s.AST.Types[typeName].Fields.ForName(field) != nil {
			t.Errorf("%s has %s", typeName, field)
		}
	}
	parsed(t, s, `{analysis{hits{total edges{searchAfter node{id score}}}mapping configs{extended}} network{nodes{nodeId}}}`)
	remote := built(t, definition.Definition{NestingPrefix: "data"}, render(t, mapping.Lyric()), schema.Options{
		Network: true, Remote: map[string]string{"theirs": "Aggregations"},
	})
	parsed(t, remote, `{network{aggregations{theirs{buckets{key doc_count}}}}}`)
	if name, known := remote.Aggregated["theirs"]; known {
		t.Errorf("what only others have is about %q", name)
	}
}

// TestDescriptions: descriptions in the configuration reach the schema unchanged, except for invalid UTF-8.
func TestDescriptions(t *testing.T) {
	for name, text := range map[string]string{
		"quotes":   `"""a"" \""" b\`,
		"controls": "a\x00b\x1f\x7f\u0080\u009f\u2028\r\n\t\b\f ",
		"unicode":  "\ufeff日本 🧬 \u00a0 é",
		"escapes":  `\u0041 \n`,
		"comment":  "# } type X { a: Int }",
	} {
		t.Run(name, func(t *testing.T) {
			s := built(t, definition.Definition{Extended: []definition.ExtendedField{{FieldName: "k", Description: text}}}, `{"properties":{"k":{"type":"keyword"}}}`)
			for _, typeName := range []string{"analysisNode", "analysisAggregations"} {
				if got := s.AST.Types[typeName].Fields.ForName("k").Description; got != text {
					t.Errorf("%s: %q, want %q", typeName, got, text)
				}
			}
		})
	}
	s := built(t, definition.Definition{Extended: []definition.ExtendedField{{FieldName: "k", Description: "a\xffb\xc3"}}}, `{"properties":{"k":{"type":"keyword"}}}`)
	if got := s.AST.Types["analysisNode"].Fields.ForName("k").Description; got != "a\ufffdb\ufffd" {
		t.Errorf("%q", got)
	}
}

// TestClients: the queries that Arranger's components, charts and federation make are valid.
func TestClients(t *testing.T) {
	s := built(t, definition.Definition{DocumentType: "file"}, file(t, "song.json"), schema.Options{Network: true})
	for name, query := range map[string]string{
		"configs": `query ArrangerConfigs{file{configs{downloads{allowCustomMaxRows maxRows} extended facets{aggregations{displayName displayType fieldName
			isActive show}} table{columns{accessor canChangeShow displayFormat displayName displayType displayValues fieldName id isArray jsonPath query show
			sortable type} defaultSorting{desc fieldName} maxResultsWindow rowIdFieldName}}}}`,
		"matchbox": `{file{configs{charts extended(fieldNames:["a"]) matchbox{displayName fieldName isActive keyFieldName searchFieldNames}} mapping}}`,
		"table": `query T($sort:[Sort],$first:Int,$offset:Int,$score:String,$sqon:JSON){file{hits(first:$first,offset:$offset,sort:$sort,score:$score,
			filters:$sqon){edges{searchAfter node{id score analysisId analysisType{name version} files{hits{total edges{node{fileName fileSize}}}}
			samples{hits(first:80){total edges{node{donor{gender}}}}} repositories{hits{edges{node{code}}}}}}total}}}`,
		"pages": `query P($after:JSON){file{hits(searchAfter:$after,trackTotalHits:false,before:"a",after:"b",last:1,first:0,
			sort:[{fieldName:"files.fileSize",order:desc,mode:max,missing:first},{fieldName:"_id"}]){total}}}`,
		"quick search": `query FileQuickSearchResults($sqon:JSON,$size:Int){file{hits(filters:$sqon,first:$size){total edges{node{primaryKey:analysisId
			samples__sampleId:samples{hits{edges{node{sampleId}}}}}}}}}`,
		"facets": `query F($sqon:JSON){file{aggregations(aggregations_filter_themselves:false,include_missing:false,filters:$sqon){
			files__fileType{buckets(max:10){key key_as_string doc_count top_hits(_source:["studyId"],size:2) filter_by_term(filter:{})} bucket_count
			cardinality(precision_threshold:100)} files__fileSize{stats{max min avg sum count}} createdAt{__typename ...on NumericAggregations{
			histogram(interval:86400000){buckets{key}} range(ranges:[{from:1,to:2.5,key:"a"},{to:3}]){buckets{key doc_count}}}}}}}`,
		"charts":     `query ChartsQuery($filters:JSON,$nodesFilter:[String]){network(filters:$filters,nodesFilter:$nodesFilter,aggregations_filter_themselves:true){aggregations{studyId{__typename bucket_count buckets{key doc_count}}} nodes{hits name nodeId errors status}}}`,
		"a node":     `query nodeQuery($filters:JSON,$aggregations_filter_themselves:Boolean,$include_missing:Boolean){file{hits(filters:$filters){total} aggregations(filters:$filters,aggregations_filter_themselves:$aggregations_filter_themselves,include_missing:$include_missing){studyId{bucket_count buckets{key doc_count __typename}}}}}`,
		"valid":      `query V($d:String!,$i:String!){hasValidConfig(documentType:$d,index:$i)}`,
		"save":       `mutation M($sqon:JSON!,$userId:String,$sort:[Sort]){newSet:saveSet(type:file,path:"analysisId",sqon:$sqon,userId:$userId,sort:$sort,refresh:WAIT_FOR){setId createdAt path size sqon type userId ids}}`,
		"save typed": `mutation M($type:DocumentType!){saveSet(type:$type,path:"a",sqon:{op:"and",content:[]}){setId}}`,
		"sets":       `{sets{hits(first:1000){total edges{node{id setId ids size createdAt}}}}}`,
		"fragments": `{file{hits{edges{node{...n ...on Node{id}}}}}} fragment n on fileNode{files{...f}} fragment f on fileFiles{hits{...c}}
			fragment c on fileFilesConnection{edges{...e}} fragment e on fileFilesEdge{node{...l}} fragment l on fileFilesNode{objectId}`,
	} {
		t.Run(name, func(t *testing.T) { parsed(t, s, query) })
	}
}

// TestFiveThousandFields: a mapping may have as many as the engine's limit is raised to.
func TestFiveThousandFields(t *testing.T) {
	m := model(t, definition.Definition{}, manyFields(t, 5000))
	s, err := schema.Build(m, schema.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(s.AST.Types["analysisAggregations"].Fields); n != 5000 {
		t.Fatalf("%d aggregations", n)
	}
}

// TestManyCollisions: names that collide in GraphQL are not slower than others.
func TestManyCollisions(t *testing.T) {
	properties := map[string]any{}
	for i := range 5000 {
		properties[string(rune(0x4e00+i))] = map[string]string{"type": "keyword"}
	}
	raw, err := json.Marshal(map[string]any{"properties": properties})
	if err != nil {
		t.Fatal(err)
	}
	s := built(t, definition.Definition{}, string(raw))
	o, _ := s.Objects["analysisNode"]
	keys := map[string]bool{}
	for m := range maps.Values(o.Members) {
		keys[m.Key] = true
	}
	if len(keys) != 5000 || o.Members["_"].Key != "一" || o.Members["_2"].Key != "丁" {
		t.Errorf("%d fields; %v", len(keys), slices.Sorted(maps.Keys(o.Members))[:3])
	}
	consistent(t, s)
}

// manyFields is a mapping of n fields with values, at the top, in objects and in nested objects.
func manyFields(t testing.TB, n int) string {
	t.Helper()
	properties := map[string]any{}
	for i := range n {
		name := fmt.Sprintf("some_field_%d", i)
		switch i % 5 {
		case 0:
			name = fmt.Sprintf("entity_%d.%s", i%200, name)
		case 1:
			name = fmt.Sprintf("entity_%d.inner.%s", i%100, name)
		}
		properties[name] = map[string]string{"type": []string{"keyword", "long", "date", "text"}[i%4]}
	}
	properties["nested"] = map[string]any{"type": "nested"}
	raw, err := json.Marshal(map[string]any{"properties": properties})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func BenchmarkBuild(b *testing.B) {
	m := model(b, definition.Definition{}, manyFields(b, 5000))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := schema.Build(m, schema.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

// refusesName reports whether an error is about a documentType.
func refusesName(err error) bool {
	text := core.MessageOf(err)
	return core.CodeOf(err) == core.CodeInvalid && (strings.HasPrefix(text, "the documentType ") || text == "the catalogue has no documentType")
}

// looked returns the Model of a definition and a mapping, nil for none.
func looked(t testing.TB, d definition.Definition, raw string) *catalogue.Model {
	t.Helper()
	m, _ := catalogue.Load(t.Context(), d, fixed(raw))
	return m
}

// TestEveryMappingHasASchema: each field of any name at any level has a unique GraphQL name.
func TestEveryMappingHasASchema(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree := mapping.NewRoot()
		tree.Properties = drawn(t, 0)
		raw, err := tree.Render()
		if err != nil {
			t.Fatal(err)
		}
		d := definition.Definition{ID: "a", Index: "a", DocumentType: rapid.SampledFrom([]string{"a", "_", "1", "a_", "Order_2", "set"}).Draw(t, "document")}
		m, problem := catalogue.Load(context.Background(), d, fixed(raw))
		if problem != nil {
			return // there are no fields
		}
		s, err := schema.Build(m, schema.Options{Network: true})
		if err != nil {
			t.Fatalf("%v of %s", err, raw)
		}
		consistent(t, s)
		if n := len(s.AST.Types[s.Document+"Node"].Fields) - 2; n != len(tree.Properties) {
			t.Errorf("%d of %d fields in %s", n, len(tree.Properties), raw)
		}
		for name := range m.Names() {
			f, _ := m.Field(name)
			if !slices.Contains([]string{"keyword", "long", "date", "text"}, f.Type) {
				continue
			}
			if !slices.ContainsFunc(s.AST.Types[s.Document+"Aggregations"].Fields, func(f *ast.FieldDefinition) bool {
				about, _ := s.Aggregated[f.Name]
				return about == name
			}) {
				t.Errorf("no aggregation is about %q in %s", name, raw)
			}
		}
	})
}

// drawn returns fields whose names are likely to collide in GraphQL.
func drawn(t *rapid.T, depth int) map[string]*mapping.Field {
	names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{
		"a", "A", "a_", "a-", "-a", "_a", "a_2", "a_2_2", "_", "__", "-", "é", "ü", "1", "_1", "a__a", "id", "score", "Node", "node", "Connection",
		"Edge", "edge", "Aggregations", "__a", "_2", "type", "hits", "2",
	}), 0, 8, rapid.ID[string]).Draw(t, "names")
	fields := map[string]*mapping.Field{}
	for _, name := range names {
		kind := rapid.SampledFrom([]mapping.Type{"keyword", "long", "date", "text", "object", "nested", "object", "nested", "geo_point"}).Draw(t, "type")
		f := &mapping.Field{Type: kind}
		switch {
		case f.Container() && depth < 3:
			f.Properties = drawn(t, depth+1)
		case kind == "text" && rapid.Bool().Draw(t, "multi"):
			f.Fields = map[string]*mapping.Field{"a": {Type: "keyword"}}
		}
		fields[name] = f
	}
	return fields
}
