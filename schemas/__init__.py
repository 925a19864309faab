"""Values of records by their schemas: Avro, Protobuf and JSON Schema, from and to Python's objects.

Values may stand in the wire format of Confluent's serializers, a schema's id in front, which a
registry or files explain. Nothing of Spark, of brokers or of the command line may enter: both use
this. Nor is anything imported here at the start: fastavro, protobuf, jsonschema and confluent-kafka
(`odradek[schemas]`) come with the first schema that needs them.
"""
