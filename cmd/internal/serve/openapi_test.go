package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http/httptest"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/openapi3gen"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"perfsim/components"
	"perfsim/ecs/golden"
)

// describe makes the description of the protocol from the types of requests
// and answers.
func describe(t *testing.T) *openapi3.T {
	t.Helper()
	schemas := openapi3.Schemas{}
	schema := func(v any) *openapi3.SchemaRef {
		ref, err := openapi3gen.NewSchemaRefForValue(v, schemas, openapi3gen.SchemaCustomizer(customize), openapi3gen.CreateTypeNameGenerator(typeName),
			openapi3gen.CreateComponentSchemas(openapi3gen.ExportComponentSchemasOptions{ExportComponentSchemas: true}))
		if err != nil {
			t.Fatalf("%T: %v", v, err)
		}
		return ref
	}
	name := func(key string, v any) *openapi3.SchemaRef {
		schemas[key] = &openapi3.SchemaRef{Value: schema(v).Value}
		return openapi3.NewSchemaRef("#/components/schemas/"+key, schemas[key].Value)
	}
	answers := map[string]*openapi3.SchemaRef{"predict": name("Prediction", prediction{}), "explain": name("Explanation", explanation{}),
		"whatif": name("Variation", variation{}), "diff": name("Comparison", comparison{})}
	line := name("LineAnswer", lineAnswer{})
	line.Value.Properties["id"] = openapi3.NewSchemaRef("", &openapi3.Schema{Description: "as in the request", Nullable: true})
	line.Value.Properties["result"] = openapi3.NewSchemaRef("", &openapi3.Schema{Description: "the answer of the call, where status is 200",
		AnyOf: openapi3.SchemaRefs{answers["predict"], answers["explain"], answers["whatif"], answers["diff"]}})
	line.Value.Required = []string{"status"}
	ask := name("Line", request{})
	ask.Value.Properties["id"] = openapi3.NewSchemaRef("", &openapi3.Schema{Nullable: true})
	ask.Value.Required = []string{"call"}
	ask.Value.Properties["call"].Value.Enum = []any{"predict", "explain", "whatif", "diff"}
	ask.Value.Properties["body_base64"] = openapi3.NewSchemaRef("", openapi3.NewStringSchema())
	for _, f := range fields("", true) {
		if p := ask.Value.Properties[key(f)]; p.Ref == "" {
			p.Value.Description = f.Tag.Get("doc")
		}
	}
	name("Delta", delta{})
	schemas["Error"] = openapi3.NewSchemaRef("", openapi3.NewObjectSchema().WithProperty("error", openapi3.NewStringSchema()).WithRequired([]string{"error"}).WithoutAdditionalProperties())
	healthy := name("Health", health{})

	doc := &openapi3.T{OpenAPI: "3.0.3", Info: &openapi3.Info{Title: "perfsim serve", Version: "1",
		Description: "Predictions of how an AI-accelerator module runs. docs/figures.md defines every figure."}, Paths: openapi3.NewPaths(),
		Components: &openapi3.Components{Schemas: schemas, SecuritySchemes: openapi3.SecuritySchemes{"token": {Value: openapi3.NewSecurityScheme().WithType("http").WithScheme("bearer")}}},
		Security:   openapi3.SecurityRequirements{{}, {"token": []string{}}}}
	failures := func(op *openapi3.Operation, statuses ...string) {
		for _, s := range statuses {
			op.Responses.Set(s, &openapi3.ResponseRef{Value: openapi3.NewResponse().WithDescription(reasons[s]).
				WithJSONSchemaRef(openapi3.NewSchemaRef("#/components/schemas/Error", schemas["Error"].Value))})
		}
	}
	good := func(id, summary, media string, ref *openapi3.SchemaRef) *openapi3.Operation {
		op := openapi3.NewOperation()
		op.OperationID, op.Summary, op.Responses = id, summary, openapi3.NewResponses()
		op.Responses.Delete("default")
		op.Responses.Set("200", &openapi3.ResponseRef{Value: openapi3.NewResponse().WithDescription("the answer").WithContent(openapi3.NewContentWithSchemaRef(ref, []string{media}))})
		failures(op, "401", "403")
		return op
	}
	summaries := map[string]string{"predict": "The report of `perfsim run --json`, and the causes that cost most.", "explain": "The report of `perfsim explain --json`.",
		"whatif": "The report of `perfsim whatif --json`.", "diff": "The report of `perfsim diff --json`."}
	for _, call := range callNames() {
		op := good(call, summaries[call], "application/json", answers[call])
		for _, f := range fields(call, false) {
			p := schema(reflect.New(f.Type).Elem().Interface()).Value
			p.Nullable = false
			op.AddParameter(openapi3.NewQueryParameter(key(f)).WithDescription(f.Tag.Get("doc")).WithSchema(p))
		}
		op.RequestBody = &openapi3.RequestBodyRef{Value: openapi3.NewRequestBody().
			WithDescription("The module, in any format that perfsim reads. With module_id or path: nothing, or what changes (Delta).").
			WithContent(openapi3.Content{"application/octet-stream": openapi3.NewMediaType().WithSchema(openapi3.NewBytesSchema().WithFormat("binary")),
				"application/json": openapi3.NewMediaType().WithSchema(&openapi3.Schema{})})}
		failures(op, "400", "404", "408", "413", "422", "500", "503", "504")
		doc.Paths.Set("/v1/"+call, &openapi3.PathItem{Post: op})
	}
	batch := good("batch", "Requests as JSON lines, answered by JSON lines in their order as they come.", "application/jsonl", line)
	batch.RequestBody = &openapi3.RequestBodyRef{Value: openapi3.NewRequestBody().WithDescription("One request a line.").
		WithContent(openapi3.NewContentWithSchemaRef(ask, []string{"application/jsonl"}))}
	doc.Paths.Set("/v1/batch", &openapi3.PathItem{Post: batch})
	doc.Paths.Set("/healthz", &openapi3.PathItem{Get: good("healthz", "Whether the server answers.", "application/json", healthy)})
	doc.Paths.Set("/openapi.json", &openapi3.PathItem{Get: good("openapi", "This description.", "application/json", openapi3.NewSchemaRef("", openapi3.NewObjectSchema()))})
	doc.Paths.Set("/metrics", &openapi3.PathItem{Get: good("metrics", "Counters in the format of Prometheus.", "text/plain", openapi3.NewSchemaRef("", openapi3.NewStringSchema()))})
	return doc
}

// reasons says what the statuses mean.
var reasons = map[string]string{"400": "the request is wrong", "401": "the token is missing or wrong", "403": "not permitted: another machine, a file outside the roots, a kernel source",
	"404": "the module is not held (any more), or there is no such file", "408": "the body did not arrive in time", "413": "the body, line or file is too large",
	"422": "the module cannot be read or predicted", "500": "an error of the server", "503": "too many requests, or too little memory: try again later", "504": "the request took too long"}

// typeName names the schema of a type: types of several packages have one name.
func typeName(t reflect.Type) string {
	pkg := path.Base(t.PkgPath())
	return strings.ToUpper(pkg[:1]) + pkg[1:] + t.Name()
}

// customize makes the schema of a type say what the encoder does: fields
// without omitempty are always there, and there are no others.
func customize(_ string, t reflect.Type, _ reflect.StructTag, s *openapi3.Schema) error {
	if t == reflect.TypeFor[components.OptionalNS]() {
		s.Nullable = true
	}
	if s.Type.Is("integer") {
		s.Max = nil // of 2^64, which JSON numbers do not hold exactly
	}
	if t.Kind() == reflect.Slice && !s.Type.Is("string") {
		s.Nullable = true // nil
	}
	if t.Kind() != reflect.Struct || !s.Type.Is("object") {
		return nil
	}
	closed := false
	s.AdditionalProperties = openapi3.BoolSchema{Has: &closed}
	s.Required = nil
	for f := range jsonFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if strings.Contains(options, "omitempty") {
			continue
		}
		s.Required = append(s.Required, name)
		if p := s.Properties[name]; p != nil && f.Type.Kind() == reflect.Pointer && f.Type.Elem().Kind() == reflect.Struct {
			s.Properties[name] = openapi3.NewSchemaRef("", &openapi3.Schema{Nullable: true, AnyOf: openapi3.SchemaRefs{p}})
		}
	}
	slices.Sort(s.Required)
	return nil
}

// jsonFields yields the fields of a struct that its JSON has, those of embedded
// structs too.
func jsonFields(t reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for _, f := range reflect.VisibleFields(t) {
			if !f.Anonymous && f.IsExported() && f.Tag.Get("json") != "-" && !yield(f) {
				return
			}
		}
	}
}

// The description that is served is that of the types, and is valid.
func TestOpenAPI(t *testing.T) {
	doc := describe(t)
	b, err := json.MarshalIndent(doc, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "openapi.json", append(b, '\n'))
	loaded, err := openapi3.NewLoader().LoadFromData(openAPI)
	if err != nil {
		t.Fatal(err)
	}
	if err := loaded.Validate(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// Real answers of every route are as described, errors too, and every route
// is described.
func TestAnswersAsDescribed(t *testing.T) {
	t.Parallel()
	doc, err := openapi3.NewLoader().LoadFromData(openAPI)
	if err != nil {
		t.Fatal(err)
	}
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		t.Fatal(err)
	}
	openapi3filter.RegisterBodyDecoder("application/jsonl", openapi3filter.JSONBodyDecoder)
	s := server(t, func(o *Options) { o.Roots = []string{examples} })
	h := s.handler(false)
	seen := map[string]bool{}
	for _, c := range []struct {
		method, url, body string
		status            int
	}{
		{"POST", "/v1/predict?machine=trn2&model=reference&name=attention", example(t, "attention.bir.json"), 200},
		{"POST", "/v1/predict?path=loop.bir.json&loops=trips&causes=0&rebuild_deps=false", "", 200},
		{"POST", "/v1/predict?path=collective.bir.json&model=calibrated", "", 200},
		{"POST", "/v1/predict?name=layer.hlo&buffers=3", layerHLO, 200},
		{"POST", "/v1/predict?name=trace.json", replayTrace, 200},
		{"POST", "/v1/predict", "neither fish nor fowl", 422},
		{"POST", "/v1/predict?module_id=sha256:00", "", 404},
		{"POST", "/v1/predict?path=../go.mod", "", 403},
		{"POST", "/v1/predict?machine=trn9", "{}", 400},
		{"POST", "/v1/explain?path=attention.bir.json&top=2", "", 200},
		{"POST", "/v1/explain?path=attention.bir.json&from_ns=100&to_ns=9000", "", 200},
		{"POST", "/v1/explain?path=loop.bir.json&block=nothing", "", 400},
		{"POST", "/v1/whatif?path=tiled_matmul.bir.json&set=pe.clock%3D0.5x..2x&set=buffers%3D2,64", "", 200},
		{"POST", "/v1/whatif?path=tiled_matmul.bir.json&elasticity=true&top=3", "", 200},
		{"POST", "/v1/whatif?path=tiled_matmul.bir.json&set=what%3D1", "", 400},
		{"POST", "/v1/diff?path=attention.bir.json&machine_b=trn1", "", 200},
		{"POST", "/v1/diff?path=attention.bir.json", "", 422},
		{"POST", "/v1/batch", `{"call":"predict","path":"loop.bir.json","id":7}`, 200},
		{"GET", "/healthz", "", 200},
		{"GET", "/openapi.json", "", 200},
		{"GET", "/metrics", "", 200},
	} {
		r := httptest.NewRequest(c.method, "http://localhost"+c.url, strings.NewReader(c.body))
		r.Header.Set("Content-Type", "application/octet-stream")
		if c.url == "/v1/batch" {
			r.Header.Set("Content-Type", "application/jsonl")
		}
		route, params, err := router.FindRoute(r)
		if err != nil {
			t.Errorf("%s %s is not described: %v", c.method, c.url, err)
			continue
		}
		seen[route.Path] = true
		in := &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route,
			Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, ExcludeRequestBody: true}}
		if c.status == 200 {
			if err := openapi3filter.ValidateRequest(context.Background(), in); err != nil {
				t.Errorf("%s: the request is not as described: %v", c.url, err)
			}
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.status {
			t.Errorf("%s %s: status %d, want %d: %s", c.method, c.url, w.Code, c.status, w.Body)
			continue
		}
		out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: w.Code, Header: w.Header(), Options: &openapi3filter.Options{IncludeResponseStatus: true}}
		out.SetBodyBytes(w.Body.Bytes())
		if err := openapi3filter.ValidateResponse(context.Background(), out); err != nil {
			t.Errorf("%s %s: the answer is not as described: %v\n%.400s", c.method, c.url, err, w.Body)
		}
	}
	for path := range doc.Paths.Map() {
		if !seen[path] {
			t.Errorf("%s is described and was not tried", path)
		}
	}
	var out bytes.Buffer
	if err := json.Compact(&out, openAPI); err != nil || !bytes.Contains(out.Bytes(), []byte(`"latency_ns"`)) {
		t.Error("the description lacks latency_ns", err)
	}
}
