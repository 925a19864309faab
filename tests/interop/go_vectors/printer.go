package main

import (
	"encoding/hex"
	"math"
	"reflect"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// tokens lists the values of a struct's leaves in the order of the wire: integers as they are,
// true and false, "s" and a text's UTF-8 in hex, "b" and bytes in hex, "f" and a float's bits,
// "[" and the number of an array's elements, "+" before a struct that could be null, "-" for
// null, "t" and the number of an unknown tagged field before its bytes.
func (s shape) tokens(value reflect.Value) []string {
	return s.structTokens(nil, "", value)
}

func (s shape) structTokens(tokens []string, path string, value reflect.Value) []string {
	for _, field := range s.fields[path] {
		name := value.Type().Field(field.index).Name
		tokens = s.fieldTokens(tokens, path+"."+name, value.Field(field.index), field.nullable)
	}
	if tags := value.FieldByName("UnknownTags"); s.flexible && tags.IsValid() {
		tags.Addr().Interface().(*kmsg.Tags).Each(func(tag uint32, content []byte) {
			number := strconv.FormatUint(uint64(tag), 10)
			tokens = append(tokens, "t"+number, "b"+hex.EncodeToString(content))
		})
	}
	return tokens
}

func (s shape) fieldTokens(
	tokens []string, path string, value reflect.Value, nullable bool,
) []string {
	switch value.Kind() {
	case reflect.Struct:
		return s.structTokens(tokens, path, value)
	case reflect.Pointer:
		isStruct := value.Type().Elem().Kind() == reflect.Struct
		switch {
		case value.IsNil() && nullable:
			return append(tokens, "-")
		case value.IsNil():
			value = reflect.New(value.Type().Elem())
		case isStruct && nullable:
			tokens = append(tokens, "+")
		}
		return s.fieldTokens(tokens, path, value.Elem(), false)
	case reflect.Slice:
		if value.IsNil() && nullable {
			return append(tokens, "-")
		}
		if value.Type().Elem().Kind() == reflect.Uint8 {
			return append(tokens, "b"+hex.EncodeToString(value.Bytes()))
		}
		tokens = append(tokens, "["+strconv.Itoa(value.Len()))
		for index := range value.Len() {
			tokens = s.fieldTokens(tokens, path, value.Index(index), false)
		}
		return tokens
	default:
		return append(tokens, leaf(value))
	}
}

func leaf(value reflect.Value) string {
	switch value.Kind() {
	case reflect.Array:
		content := make([]byte, value.Len())
		reflect.Copy(reflect.ValueOf(content), value)
		return "b" + hex.EncodeToString(content)
	case reflect.String:
		return "s" + hex.EncodeToString([]byte(value.String()))
	case reflect.Bool:
		return strconv.FormatBool(value.Bool())
	case reflect.Float64:
		return "f" + strconv.FormatUint(math.Float64bits(value.Float()), 16)
	case reflect.Uint16, reflect.Uint32:
		return strconv.FormatUint(value.Uint(), 10)
	default:
		return strconv.FormatInt(value.Int(), 10)
	}
}
