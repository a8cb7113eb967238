package catalogue_test

import (
	"context"
	"fmt"

	"tutti/internal/core"
	"tutti/internal/search/catalogue"
	"tutti/internal/search/catalogue/definition"
)

func ExampleLoad() {
	d := definition.Definition{
		ID: "donors", DocumentType: "donor", Index: "records", NestingPrefix: "data",
		Extended: []definition.ExtendedField{{FieldName: "height", Unit: "cm"}},
	}
	engine := fixed{raw: `{"properties":{"data":{"properties":{
		"height":{"type":"double"},
		"samples":{"type":"nested","properties":{"sampleType":{"type":"keyword"}}}}}}}`}
	m, problem := catalogue.Load(context.Background(), d, engine)
	if problem != nil {
		fmt.Println(problem.Code, problem.Message)
		return
	}
	for _, f := range m.Catalogue().Fields {
		path, _ := m.Path(f.Name)
		fmt.Printf("%s: %s (%s) %s at %s\n", f.Name, f.DisplayName, f.Type, f.Unit, path)
	}
	field, _ := m.Field("samples.sampleType")
	fmt.Println("nested in", field.Nested)
	// Output:
	// height: Height (double) cm at data.height
	// samples: Samples (nested)  at data.samples
	// samples.sampleType: Samples Sample Type (keyword)  at data.samples.sampleType
	// nested in [samples]
}

func ExampleRegistry() {
	ctx := context.Background()
	defs := []definition.Definition{{ID: "donors", DocumentType: "donor", Index: "records"}}
	engine := fixed{err: core.WrapError(core.CodeIndexBlocked, "the index is missing", core.ErrIndexMissing)}
	r := catalogue.New(defs, engine, catalogue.Config{})
	if err := r.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = r.Stop(ctx) }()
	set := r.Catalogues()
	fmt.Println(set.Status(), set.ByID("donors").Problem.Code, r.Model("donors") == nil)
	// Output: unhealthy index_not_found true
}
