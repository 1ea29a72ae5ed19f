"""Every setting of DuckDB 1.5 and 2.0: those that tests of plans set as far from the usual as they
go, and those that cannot concern what is counted. The rest is refused (`on_duckdb`).
"""

#: Settings of DuckDB that change what a query may mean, and that plans do not ask.
IRRELEVANT = {
    "TimeZone": "'Asia/Kathmandu'",
    "Calendar": "'buddhist'",
    "default_null_order": "'NULLS_FIRST_ON_ASC_LAST_ON_DESC'",
    "default_order": "'DESC'",
    "integer_division": "true",
    "ieee_floating_point_ops": "false",
    "error_on_division_by_zero": "false",
    "order_by_non_integer_literal": "true",
    "regex_match_operator_semantics": "'full'",
    "scalar_subquery_error_on_multiple_rows": "false",
    "old_implicit_casting": "true",
    "legacy_disable_null_type": "true",
    "disable_timestamptz_casts": "true",
    "preserve_identifier_case": "false",
    "preserve_insertion_order": "false",
    "table_function_identifier_conversion": "'ENABLE_IMPLICIT_STRING'",
    "show_behavior": "'SETTING'",
    "enable_logging": "true",
    "errors_as_json": "true",
    "python_enable_replacements": "false",
    "python_scan_all_frames": "true",
    "binary_as_string": "true",
    "parquet_can_have_nan": "true",
    "parquet_use_page_index": "false",
    "arrow_large_buffer_size": "true",
    "arrow_lossless_conversion": "true",
    "arrow_output_list_view": "true",
    "arrow_output_version": "'1.4'",
    "produce_arrow_string_view": "true",
    "enable_fsst_vectors": "true",
    "threads": "3",
    "disabled_optimizers": "'filter_pushdown,statistics_propagation,common_subexpressions'",
    "perfect_ht_threshold": "0",
    "merge_join_threshold": "0",
    "nested_loop_join_threshold": "1000000",
    "prefer_range_joins": "true",
    "ordered_aggregate_threshold": "1",
    "dynamic_or_filter_threshold": "1000",
    "pivot_filter_threshold": "0",
    "approximate_join_order_threshold": "1",
    "asof_loop_join_threshold": "0",
    "index_scan_max_count": "1000000",
    "index_scan_percentage": "1",
    "late_materialization_max_rows": "1000000",
    "delim_join_as_cte": "false",
    "scheduler_process_partial": "true",
    "enable_caching_operators": "false",
    "lambda_syntax": "'DISABLE_SINGLE_ARROW'",
    "deprecated_using_key_syntax": "'UNION_AS_UNION_ALL'",
    "debug_force_external": "true",
    "debug_force_no_cross_product": "true",
    "debug_asof_iejoin": "true",
    "debug_physical_table_scan_execution_strategy": "'SYNCHRONOUS'",
    "debug_verify_vector": "'DICTIONARY_EXPRESSION'",
    "debug_window_mode": "'SEPARATE'",
    "max_streaming_buffer_size": "'1KB'",
    "streaming_buffer_size": "'1KB'",
    "warnings_as_errors": "true",  # at last: to set what is deprecated is one
}

#: Settings that cannot concern what is counted, by the reason.
APART = {
    "another name of a setting above, or of one that is refused": """
        null_order worker_threads""",
    "cannot be set, or only narrows what else can be": """
        standard_vector_size lock_configuration duckdb_api""",
    "turns off all that `disabled_optimizers` turns off in part; a test counts without": """
        enable_optimizer""",
    "finds tables, which plans do not name; macros are refused in every schema": """
        schema search_path""",
    "deep or wide queries fail, whatever the data": """
        max_expression_depth pivot_limit""",
    "a query that takes more time, memory or disk than this fails": """
        max_execution_time max_memory memory_limit operator_memory_limit max_temp_directory_size
        temp_directory temp_file_encryption block_allocator_memory
        allocator_background_threads allocator_bulk_deallocation_flush_threshold
        allocator_flush_threshold debug_eviction_queue_sleep_micro_seconds""",
    "when and on which thread a step runs": """
        async_threads external_threads pin_threads""",
    "which files, places and extensions may be read, and who asks": """
        access_mode allow_community_extensions allow_extension_repositories
        allow_extensions_metadata_mismatch allow_persistent_secrets allow_unredacted_secrets
        allow_unsigned_extensions allowed_configs allowed_directories allowed_paths
        autoinstall_extension_repository autoinstall_known_extensions autoload_known_extensions
        custom_extension_repository custom_user_agent default_secret_storage disabled_filesystems
        enable_external_access extension_directories extension_directory
        extension_repository_directory file_search_path force_mbedtls_unsafe home_directory
        http_client_pool_capacity http_proxy http_proxy_password http_proxy_username
        http_retry_quota_throttled http_retry_throttled_wait_ms password
        secret_directory user username""",
    "how files and Python's objects become rows: the data are what they become": """
        cache_local_files disable_parquet_prefetching enable_external_file_cache
        enable_geoparquet_conversion enable_http_metadata_cache enable_object_cache
        external_file_cache_local_max_block_size external_file_cache_remote_max_block_size
        external_file_cache_remote_min_block_size external_file_cache_request_sizing
        external_file_cache_spill ignore_unknown_crs json_geometry_format pandas_analyze_sample
        parquet_metadata_cache parquet_prefetch_column_gap prefetch_all_parquet_files
        read_ahead_depth storage_block_prefetch validate_external_file_cache""",
    "how databases are written, and when transactions begin and end": """
        __delta_only_variant_encoding_enabled auto_checkpoint_skip_wal_threshold
        checkpoint_on_detach checkpoint_threshold current_transaction_invalidation_policy
        debug_checkpoint_abort debug_checkpoint_scan_sleep_ms debug_checkpoint_sleep_ms
        debug_skip_checkpoint_on_commit debug_verify_blocks default_block_size
        default_transaction_invalidation_policy disable_database_invalidation
        disabled_compression_methods enable_macro_dependencies enable_optimistic_write
        enable_view_dependencies experimental_metadata_reuse force_bitpacking_mode
        force_column_metadata_reuse force_compression force_variant_shredding fsync_mode
        geometry_minimum_shredding_size immediate_transaction_mode initial_column_segment_size
        max_vacuum_tasks partitioned_write_flush_threshold partitioned_write_max_open_files
        storage_compatibility_version vacuum_rebuild_indexes variant_minimum_shredding_size
        wal_autocheckpoint wal_autocheckpoint_entries write_buffer_row_group_count
        write_buffer_row_group_memory_limit zstd_min_string_length""",
    "what is logged and shown, and where": """
        catalog_error_max_schemas custom_profiling_settings disabled_log_types enable_http_logging
        enable_profiling enable_progress_bar enable_progress_bar_print enabled_log_types
        explain_output http_logging_output log_query_path logging_level logging_mode
        logging_sink logging_storage profile_output profiling_coverage profiling_mode
        profiling_output
        profiling_renderer_settings progress_bar_time redact_http_logs tracked_metrics""",
}
