package oracle

import (
	_ "crypto/sha256" // an algorithm of digests is known if its hash is linked
	_ "crypto/sha512"
	"encoding/json"
	"math"
	"math/big"
	"os"
	"strings"
	"testing"

	"github.com/distribution/reference"
	"gopkg.in/inf.v0"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/wasmproxy/wasmproxy/sdk/image"
	"github.com/wasmproxy/wasmproxy/sdk/quantity"
)

// vectors are those of the SDK's tests in each language.
func vectors(f *testing.F) (v struct {
	Image    []struct{ Name string }
	Quantity []struct{ Text string }
}) {
	text, err := os.ReadFile("../../../sdk/testdata/library.json")
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	if err != nil || len(v.Image) == 0 || len(v.Quantity) == 0 {
		f.Fatalf("%d images, %d quantities, error %v", len(v.Image), len(v.Quantity), err)
	}
	return v
}

// FuzzImage compares the names of the vectors, and others if it is asked to.
func FuzzImage(f *testing.F) {
	for _, v := range vectors(f).Image {
		f.Add(v.Name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		got, err := image.Parse(name)
		want, wrong := reference.ParseAnyReference(name)
		named, isNamed := want.(reference.Named)
		if wrong == nil && !isNamed { // a digest, which is an image's id
			if !image.IsID(name) || err == nil {
				t.Fatalf("%q: is no id, %v", name, err)
			}
			return
		}
		if image.IsID(name) {
			t.Fatalf("%q: is an id, not %v", name, want)
		}
		if wrong == nil && reference.Domain(named) == "" {
			return // a host with _, which distribution takes for a path without a registry
		}
		if (err == nil) != (wrong == nil) {
			t.Fatalf("%q: %v, distribution: %v", name, err, wrong)
		}
		if err != nil {
			return
		}
		named = reference.TagNameOnly(named)
		tag, digest := "", ""
		if tagged, ok := named.(reference.Tagged); ok {
			tag = tagged.Tag()
		}
		if digested, ok := named.(reference.Digested); ok {
			digest = digested.Digest().String()
		}
		if got.Registry != reference.Domain(named) || got.Repository != reference.Path(named) || got.Tag != tag || got.Digest != digest {
			t.Errorf("%q: %+v, distribution: %v", name, got, named)
		}
		if got.String() != named.String() || got.Short != !strings.HasPrefix(name, got.Registry+"/") && !strings.HasPrefix(name, "index.docker.io/") {
			t.Errorf("%q: %v, short %v; distribution: %v", name, got, got.Short, named)
		}
	})
}

// FuzzQuantity compares the quantities of the vectors, and others if it is asked to.
func FuzzQuantity(f *testing.F) {
	for _, v := range vectors(f).Quantity {
		f.Add(v.Text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if i := strings.IndexAny(text, "eE"); i >= 0 && len(text)-i > 5 {
			t.Skip("apimachinery takes minutes for exponents of many digits")
		}
		want, wrong := resource.ParseQuantity(text)
		value, err := quantity.Value(text)
		milli, err2 := quantity.Milli(text)
		if (err == nil) != (err2 == nil) {
			t.Fatalf("%q: %v and %v", text, err, err2)
		}
		if err != nil && wrong == nil {
			number := strings.TrimLeft(text, "+-.")
			if strings.Contains(err.Error(), "more than 19 digits") || strings.IndexAny(number, "0123456789") != 0 {
				return // the two differences that package quantity names
			}
			t.Fatalf("%q: %v, apimachinery: %v", text, err, &want)
		}
		if wrong != nil {
			if err == nil {
				t.Fatalf("%q: %d, apimachinery: %v", text, value, wrong)
			}
			return
		}
		if w := rounded(want.AsDec(), 0); value != w {
			t.Errorf("%q: value %d, apimachinery: %d", text, value, w)
		}
		if w := rounded(want.AsDec(), 3); milli != w {
			t.Errorf("%q: milli %d, apimachinery: %d", text, milli, w)
		}
	})
}

// rounded is Value or MilliValue. Those of apimachinery overflow.
func rounded(d *inf.Dec, power inf.Scale) int64 {
	d = new(inf.Dec).Mul(d, inf.NewDec(1, -power))
	n := new(inf.Dec).Round(d, 0, inf.RoundUp).UnscaledBig()
	most := big.NewInt(math.MaxInt64)
	if new(big.Int).Abs(n).Cmp(most) > 0 {
		n = most.Mul(most, big.NewInt(int64(n.Sign())))
	}
	return n.Int64()
}
