package cases

// Mapping has three levels of nested fields, and another nested field beside them.
const Mapping = `{"dynamic":"strict","properties":{
	"uid":{"type":"keyword"},"tags":{"type":"keyword"},"score":{"type":"double"},"weight":{"type":"half_float"},"open":{"type":"boolean"},"at":{"type":"date"},
	"seen":{"type":"date_nanos"},
	"address":{"type":"ip"},"from":{"type":"ip"},"note":{"type":"text","fields":{"raw":{"type":"keyword"}}},"info":{"type":"flattened"},
	"days":{"type":"date_range","format":"yyyy-MM-dd"},"times":{"type":"date_range"},"whole":{"type":"integer_range"},"real":{"type":"float_range"},
	"long":{"type":"long_range"},"double":{"type":"double_range"},"net":{"type":"ip_range"},"place":{"type":"geo_point"},
	"code":{"type":"keyword","normalizer":"lowercase"},
	"sex":{"type":"alias","path":"donor.sex"},
	"donor":{"properties":{"sex":{"type":"keyword"},"age":{"type":"integer"}}},
	"kin":{"type":"nested","properties":{"sex":{"type":"keyword"}}},
	"files":{"type":"nested","properties":{"type":{"type":"keyword"},"size":{"type":"long"},
		"index":{"type":"nested","properties":{"type":{"type":"keyword"},"size":{"type":"long"},
			"part":{"type":"nested","properties":{"n":{"type":"integer"}}}}}}}}}`

// Document is a document, as JSON with line feeds and tabs between its tokens.
type Document struct{ ID, Source string }

// Documents returns documents for which expected results are easy to determine.
func Documents() []Document {
	return []Document{
		{"a", `{"uid":"a","tags":["x","y"],"donor":{"sex":"F","age":40},"score":0.5,"weight":1.5,"open":true,"at":"2024-03-05","note":"red green","seen":"2023-01-31T15:44:47.270418Z",
			"days":{"gte":"2020-01-01","lte":"2030-05-01"},"times":{"gt":"2020-01-01T23:59:59.999Z","lt":"2021-01-01T00:00:00.000Z"},"whole":{"gt":1,"lt":5},"real":{"gt":1,"lt":5},"long":{"gte":9007199254740993},
			"double":{"lte":-0.5},"net":"10.0.0.0/8","place":{"lat":1,"lon":2},"code":"BÄR",
			"address":"10.0.0.1","from":["10.0.0.10","10.0.0.2"],"info":{"k":"v"},"kin":[{"sex":"M"}],
			"files":[{"type":"bam","size":10,"index":[{"type":"bai","size":1,"part":[{"n":1},{"n":2}]}]},{"type":"vcf","size":20}]}`},
		{"b", `{"uid":"b","tags":"x","weight":2,"donor":{"sex":"M","age":[50,60]},"open":false,"at":"2024-03-05T10:20:30Z","seen":"2023-01-31T15:44:47.270Z",
			"days":{"gte":"1999-01-01","lte":"1999-12-31"},"times":{"gte":"1999-01-01T00:00:00.000Z","lte":"1999-01-01T23:59:59.999Z"},"whole":[{"gte":7,"lte":9},{"gte":null,"lte":-3}],
			"real":{"gt":5},"long":{"gt":9007199254740993},"net":{"gt":"10.255.255.255","lte":"2001:db8::1"},"place":[1,2],"code":"Foo","from":"9.0.0.1",
			"files":[{"type":"bam","size":20,"index":{"type":"csi","size":2}},{"type":"bam","size":30}]}`},
		{"c", `{"uid":"c","tags":[],"score":-0.0,"whole":{},"times":{"gte":1577836800000,"lt":"2020-01-01T00:00:01Z"},"place":"3,4","code":"foo","from":["2001:db8::1","::1"],"open":"false","at":"2025","seen":"2023-01-31T15:44:48Z","note":"Blue","files":[]}`},
		{"d", `{"uid":"d","from":"10.0.0.9","days":null,"whole":[],"place":null,"tags":null,"weight":0,"donor":{"sex":"","age":0},"at":1709634030123,
			"files":[{"type":null,"size":10},{"size":20,"index":[{"type":"bai","size":2,"part":[{"n":2}]},{"type":"csi","size":1}]}]}`},
		{"e", `{"uid":"e","tags":"HLA-A*02:01","score":[2,2],"donor":[{"sex":"F"},{"age":7.9}],"files":{"type":"vcf","size":"10"}}`},
		{"f", `{"uid":"f"}`},
	}
}
