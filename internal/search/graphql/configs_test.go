package graphql_test

import (
	"encoding/json"
	"testing"

	"tutti/internal/search/catalogue/definition"
)

func TestConfigs(t *testing.T) {
	t.Run("as configured", func(t *testing.T) {
		w := newWorld(t, func(d *definition.Definition) {
			d.Facets = json.RawMessage(`{"aggregations":[{"fieldName":"files__name","show":true},{"fieldName":"tags","displayName":"T","isActive":true},{"displayName":"no name"}]}`)
			d.Table = json.RawMessage(`{"rowIdFieldName":"analysisId","columns":[{"fieldName":"tags","sortable":true},{"fieldName":"files.hits.edges[0].node.name","accessor":"x","show":true}],"defaultSorting":[{"fieldName":"count","desc":true},{"fieldName":"tags"}]}`)
			d.Matchbox = json.RawMessage(`[{"displayName":"M","fieldName":"studyId","searchFieldNames":["a","b"]}]`)
			d.Downloads = json.RawMessage(`{"maxRows":7}`)
			d.Charts = json.RawMessage(`{"query":"q"}`)
		})
		w.answers(`{analysis{configs{__typename charts downloads{allowCustomMaxRows maxRows}
			facets{aggregations{fieldName displayName displayType show isActive type}} matchbox{displayName keyFieldName searchFieldNames}
			table{rowIdFieldName maxResultsWindow defaultSorting{fieldName desc}
				columns{__typename fieldName accessor canChangeShow displayName displayType displayValues isArray jsonPath query show sortable}}}}}`,
			`{"data":{"analysis":{"configs":{"__typename":"ConfigsWithState","charts":{"query":"q"},"downloads":{"allowCustomMaxRows":false,"maxRows":7},
			"facets":{"aggregations":[
				{"fieldName":"files__name","displayName":"Files Name","displayType":"keyword","show":true,"isActive":false,"type":null},
				{"fieldName":"tags","displayName":"T","displayType":"keyword","show":false,"isActive":true,"type":null}]},
			"matchbox":[{"displayName":"M","keyFieldName":null,"searchFieldNames":["a","b"]}],
			"table":{"rowIdFieldName":"analysisId","maxResultsWindow":10000,"defaultSorting":[{"fieldName":"count","desc":true},{"fieldName":"tags","desc":false}],"columns":[
				{"__typename":"ColumnMapping","fieldName":"tags","accessor":"tags","canChangeShow":true,"displayName":"Labels","displayType":"keyword","displayValues":{},
					"isArray":true,"jsonPath":"$.tags","query":"tags","show":false,"sortable":true},
				{"__typename":"ColumnMapping","fieldName":"files.hits.edges[0].node.name","accessor":"x","canChangeShow":true,"displayName":"* files.hits.edges[0].node.name","displayType":null,
					"displayValues":{},"isArray":false,"jsonPath":"$.files.hits.edges[*].node.name","query":"files { hits { edges { node { name } } } }","show":true,"sortable":null}]}}}}}`)
	})
	t.Run("by default", func(t *testing.T) {
		w := newWorld(t)
		w.answers(`{analysis{configs{charts matchbox{fieldName} downloads{allowCustomMaxRows maxRows} table{rowIdFieldName columns{fieldName show}} facets{aggregations{fieldName show}}}}}`,
			`{"data":{"analysis":{"configs":{"charts":null,"matchbox":[],"downloads":{"allowCustomMaxRows":false,"maxRows":0},"table":{"rowIdFieldName":"id","columns":[
			{"fieldName":"analysisId","show":true},{"fieldName":"count","show":true},{"fieldName":"created","show":true},{"fieldName":"experiment.lab.city","show":true},
			{"fieldName":"experiment.platform","show":true},{"fieldName":"files.name","show":true},{"fieldName":"files.parts.n","show":true},{"fieldName":"files.size","show":true},
			{"fieldName":"info","show":true},{"fieldName":"note","show":true}]},"facets":{"aggregations":[
			{"fieldName":"analysisId","show":true},{"fieldName":"count","show":true},{"fieldName":"created","show":true},{"fieldName":"experiment__lab__city","show":true},
			{"fieldName":"experiment__platform","show":true},{"fieldName":"files__name","show":true},{"fieldName":"files__parts__n","show":true},{"fieldName":"files__size","show":true},
			{"fieldName":"info","show":true},{"fieldName":"note","show":true}]}}}}}`)
	})
	t.Run("by default no facet of values that the index does not count", func(t *testing.T) {
		w := &world{T: t, engine: &engine{}}
		w.over(plain(), `{"properties":{"a":{"type":"keyword","doc_values":false},"b":{"type":"long","doc_values":"false"},"c":{"type":"keyword"},
			"d":{"type":"alias","path":"a"},"e":{"type":"keyword","doc_values":true}}}`)
		w.answers(`{analysis{configs{facets{aggregations{fieldName}}}}}`, `{"data":{"analysis":{"configs":{"facets":{"aggregations":[{"fieldName":"c"},{"fieldName":"e"}]}}}}}`)
	})
	t.Run("columns of nested fields by default", func(t *testing.T) {
		w := &world{T: t, engine: &engine{}}
		w.over(plain(), `{"properties":{"odd-name":{"type":"keyword"},"files":{"type":"nested","properties":{"analysisId":{"type":"keyword"}}},
			"title":{"type":"text","fields":{"raw":{"type":"keyword"}}},"other":{"type":"alias","path":"odd-name"}}}`)
		w.answers(`{analysis{configs{table{columns{fieldName accessor query jsonPath isArray}}}}}`, `{"data":{"analysis":{"configs":{"table":{"columns":[
			{"fieldName":"files.analysisId","accessor":"files.analysisId","query":"files { hits { edges { node { analysisId } } } }","jsonPath":"$.files.hits.edges[*].node.analysisId","isArray":true},
			{"fieldName":"odd-name","accessor":"odd-name","query":"odd_name","jsonPath":"$.odd_name","isArray":false},
			{"fieldName":"title","accessor":"title","query":"title","jsonPath":"$.title","isArray":false}]}}}}}`)
	})
	t.Run("what is said of fields", func(t *testing.T) {
		w := newWorld(t)
		w.answers(`{analysis{configs{extended(fieldNames:["tags","files","nobody"])}}}`, `{"data":{"analysis":{"configs":{"extended":[
			{"displayName":"Files","displayType":"nested","displayValues":{},"fieldName":"files","isActive":false,"isArray":false,"primaryKey":false,"quickSearchEnabled":false,"rangeStep":0,"type":"nested","unit":null},
			{"displayName":"Labels","displayType":"keyword","displayValues":{},"fieldName":"tags","isActive":false,"isArray":true,"primaryKey":false,"quickSearchEnabled":false,"rangeStep":0,"type":"keyword","unit":null}]}}}}`)
		w.answers(`{analysis{configs{extended(fieldNames:[])}}}`, `{"data":{"analysis":{"configs":{"extended":[]}}}}`)
	})
	t.Run("the mapping", func(t *testing.T) {
		w := &world{T: t, engine: &engine{}}
		w.over(plain(), `{"properties":{"a":{"type":"keyword"},"b":{"properties":{"c":{"type":"long"}}}}}`)
		w.answers(`{analysis{mapping}}`, `{"data":{"analysis":{"mapping":{"a":{"type":"keyword"},"b":{"properties":{"c":{"type":"long"}}}}}}}`)
	})
}
