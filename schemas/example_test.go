package schemas_test

import (
	"context"
	"fmt"
	"time"

	"tutti/internal/core"
	"tutti/schemas"
)

func ExampleNew() {
	ctx := context.Background()
	s, err := schemas.New(&fakeStore{}, schemas.Config{
		Now: func() time.Time { return time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	_, err = s.Register(ctx, []byte(`{"name": "variant", "options": {"fileTypes": ["VCF"]}, "schema": {
		"type": "object", "required": ["experiment"],
		"properties": {"experiment": {"type": "object", "required": ["caller"]}}}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = s.Validate(ctx, "S1", `{"studyId": "S1", "analysisType": {"name": "variant"}, "experiment": {},
		"files": [{"dataType": "calls", "fileName": "a.vcf", "fileSize": 3, "fileType": "vcf", "fileAccess": "open",
			"fileMd5sum": "0123456789abcdef0123456789abcdef"}]}`)
	fmt.Println(core.CodeOf(err))
	for _, v := range violations(err) {
		fmt.Println(v.Pointer, v.Message)
	}
	// Output:
	// invalid
	// /experiment the property "caller" is missing
	// /files/0/fileType "vcf" is not one of the file types of this analysis type: "VCF"; only the case differs from "VCF"
}

func ExampleService_Register() {
	s, err := schemas.New(&fakeStore{}, schemas.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = s.Register(context.Background(), []byte(`{"name": "variant", "schema": {"type": "object"}}`))
	for _, v := range violations(err) {
		fmt.Println(v.Pointer, v.Message)
	}
	// Output:
	// /schema the property "required" is missing
	// /schema the property "properties" is missing
}

func ExampleService_Validate() {
	ctx := context.Background()
	s, err := schemas.New(&fakeStore{}, schemas.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := s.Register(ctx, []byte(`{"name": "a", "schema": `+simple+`}`)); err != nil {
		fmt.Println(err)
		return
	}
	ref, err := s.Validate(ctx, "S1", analysis("a", ""))
	fmt.Println(ref.Name, ref.Version, err)
	// Output: a 1 <nil>
}
