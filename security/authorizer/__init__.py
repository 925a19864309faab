"""What a principal may do: ACLs with Kafka's semantics.

Nothing here reads a store or a request: `AclAuthorizer` is given ACLs, and decides. Reading and
changing them in the metadata store is `broker.dynamic_config.acl_manager`'s.
"""
