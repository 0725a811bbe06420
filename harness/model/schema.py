"""The TFLite schema as data: enum names, unions and the fields of every table.

Source: TFLM 90b983c, tensorflow/compiler/mlir/lite/schema/schema.fbs. A table is one line of fields in slot order,
``name:kind[=default]``; the kinds are the struct codes of scalars, ``s`` a string, ``{T}`` a table, ``<U>`` a union
(two slots: its type and its value), ``[`` before a kind a vector, and a leading ``-`` a deprecated field, which keeps
its slot and is not read. tests/model/test_schema.py holds the same facts against the ``tflite`` package.
"""

from __future__ import annotations

#: Names by value, from 0 without a gap.
BUILTIN_OPERATORS: tuple[str, ...] = tuple(
    name
    for line in """
    ADD AVERAGE_POOL_2D CONCATENATION CONV_2D DEPTHWISE_CONV_2D DEPTH_TO_SPACE DEQUANTIZE EMBEDDING_LOOKUP FLOOR
    FULLY_CONNECTED HASHTABLE_LOOKUP L2_NORMALIZATION L2_POOL_2D LOCAL_RESPONSE_NORMALIZATION LOGISTIC
    LSH_PROJECTION LSTM MAX_POOL_2D MUL RELU RELU_N1_TO_1 RELU6 RESHAPE RESIZE_BILINEAR RNN SOFTMAX
    SPACE_TO_DEPTH SVDF TANH CONCAT_EMBEDDINGS SKIP_GRAM CALL CUSTOM EMBEDDING_LOOKUP_SPARSE PAD
    UNIDIRECTIONAL_SEQUENCE_RNN GATHER BATCH_TO_SPACE_ND SPACE_TO_BATCH_ND TRANSPOSE MEAN SUB DIV SQUEEZE
    UNIDIRECTIONAL_SEQUENCE_LSTM STRIDED_SLICE BIDIRECTIONAL_SEQUENCE_RNN EXP TOPK_V2 SPLIT LOG_SOFTMAX DELEGATE
    BIDIRECTIONAL_SEQUENCE_LSTM CAST PRELU MAXIMUM ARG_MAX MINIMUM LESS NEG PADV2 GREATER GREATER_EQUAL
    LESS_EQUAL SELECT SLICE SIN TRANSPOSE_CONV SPARSE_TO_DENSE TILE EXPAND_DIMS EQUAL NOT_EQUAL LOG SUM SQRT
    RSQRT SHAPE POW ARG_MIN FAKE_QUANT REDUCE_PROD REDUCE_MAX PACK LOGICAL_OR ONE_HOT LOGICAL_AND LOGICAL_NOT
    UNPACK REDUCE_MIN FLOOR_DIV REDUCE_ANY SQUARE ZEROS_LIKE FILL FLOOR_MOD RANGE RESIZE_NEAREST_NEIGHBOR
    LEAKY_RELU SQUARED_DIFFERENCE MIRROR_PAD ABS SPLIT_V UNIQUE CEIL REVERSE_V2 ADD_N GATHER_ND COS WHERE RANK
    ELU REVERSE_SEQUENCE MATRIX_DIAG QUANTIZE MATRIX_SET_DIAG ROUND HARD_SWISH IF WHILE NON_MAX_SUPPRESSION_V4
    NON_MAX_SUPPRESSION_V5 SCATTER_ND SELECT_V2 DENSIFY SEGMENT_SUM BATCH_MATMUL
    PLACEHOLDER_FOR_GREATER_OP_CODES CUMSUM CALL_ONCE BROADCAST_TO RFFT2D CONV_3D IMAG REAL COMPLEX_ABS
    HASHTABLE HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_SIZE REDUCE_ALL CONV_3D_TRANSPOSE VAR_HANDLE
    READ_VARIABLE ASSIGN_VARIABLE BROADCAST_ARGS RANDOM_STANDARD_NORMAL BUCKETIZE RANDOM_UNIFORM MULTINOMIAL
    GELU DYNAMIC_UPDATE_SLICE RELU_0_TO_1 UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_SUM ATAN2
    UNSORTED_SEGMENT_MIN SIGN BITCAST BITWISE_XOR RIGHT_SHIFT STABLEHLO_LOGISTIC STABLEHLO_ADD STABLEHLO_DIVIDE
    STABLEHLO_MULTIPLY STABLEHLO_MAXIMUM STABLEHLO_RESHAPE STABLEHLO_CLAMP STABLEHLO_CONCATENATE
    STABLEHLO_BROADCAST_IN_DIM STABLEHLO_CONVOLUTION STABLEHLO_SLICE STABLEHLO_CUSTOM_CALL STABLEHLO_REDUCE
    STABLEHLO_ABS STABLEHLO_AND STABLEHLO_COSINE STABLEHLO_EXPONENTIAL STABLEHLO_FLOOR STABLEHLO_LOG
    STABLEHLO_MINIMUM STABLEHLO_NEGATE STABLEHLO_OR STABLEHLO_POWER STABLEHLO_REMAINDER STABLEHLO_RSQRT
    STABLEHLO_SELECT STABLEHLO_SUBTRACT STABLEHLO_TANH STABLEHLO_SCATTER STABLEHLO_COMPARE STABLEHLO_CONVERT
    STABLEHLO_DYNAMIC_SLICE STABLEHLO_DYNAMIC_UPDATE_SLICE STABLEHLO_PAD STABLEHLO_IOTA STABLEHLO_DOT_GENERAL
    STABLEHLO_REDUCE_WINDOW STABLEHLO_SORT STABLEHLO_WHILE STABLEHLO_GATHER STABLEHLO_TRANSPOSE DILATE
    STABLEHLO_RNG_BIT_GENERATOR REDUCE_WINDOW STABLEHLO_COMPOSITE STABLEHLO_SHIFT_LEFT STABLEHLO_CBRT
    STABLEHLO_CASE
    """.splitlines()
    for name in line.split()
)

#: The members of each union; member i has type i + 1, type 0 is NONE.
UNIONS: dict[str, tuple[str, ...]] = {
    name: tuple(members.split())
    for name, members in {
        "QuantizationDetails": "CustomQuantization BlockwiseQuantization MultiAxisQuantization",
        "SparseIndexVector": "Int32Vector Uint16Vector Uint8Vector",
        "BuiltinOptions": """
            Conv2DOptions DepthwiseConv2DOptions ConcatEmbeddingsOptions LSHProjectionOptions Pool2DOptions
            SVDFOptions RNNOptions FullyConnectedOptions SoftmaxOptions ConcatenationOptions AddOptions
            L2NormOptions LocalResponseNormalizationOptions LSTMOptions ResizeBilinearOptions CallOptions
            ReshapeOptions SkipGramOptions SpaceToDepthOptions EmbeddingLookupSparseOptions MulOptions
            PadOptions GatherOptions BatchToSpaceNDOptions SpaceToBatchNDOptions TransposeOptions ReducerOptions
            SubOptions DivOptions SqueezeOptions SequenceRNNOptions StridedSliceOptions ExpOptions TopKV2Options
            SplitOptions LogSoftmaxOptions CastOptions DequantizeOptions MaximumMinimumOptions ArgMaxOptions
            LessOptions NegOptions PadV2Options GreaterOptions GreaterEqualOptions LessEqualOptions
            SelectOptions SliceOptions TransposeConvOptions SparseToDenseOptions TileOptions ExpandDimsOptions
            EqualOptions NotEqualOptions ShapeOptions PowOptions ArgMinOptions FakeQuantOptions PackOptions
            LogicalOrOptions OneHotOptions LogicalAndOptions LogicalNotOptions UnpackOptions FloorDivOptions
            SquareOptions ZerosLikeOptions FillOptions BidirectionalSequenceLSTMOptions
            BidirectionalSequenceRNNOptions UnidirectionalSequenceLSTMOptions FloorModOptions RangeOptions
            ResizeNearestNeighborOptions LeakyReluOptions SquaredDifferenceOptions MirrorPadOptions AbsOptions
            SplitVOptions UniqueOptions ReverseV2Options AddNOptions GatherNdOptions CosOptions WhereOptions
            RankOptions ReverseSequenceOptions MatrixDiagOptions QuantizeOptions MatrixSetDiagOptions
            HardSwishOptions IfOptions WhileOptions DepthToSpaceOptions NonMaxSuppressionV4Options
            NonMaxSuppressionV5Options ScatterNdOptions SelectV2Options DensifyOptions SegmentSumOptions
            BatchMatMulOptions CumsumOptions CallOnceOptions BroadcastToOptions Rfft2dOptions Conv3DOptions
            HashtableOptions HashtableFindOptions HashtableImportOptions HashtableSizeOptions VarHandleOptions
            ReadVariableOptions AssignVariableOptions RandomOptions BucketizeOptions GeluOptions
            DynamicUpdateSliceOptions UnsortedSegmentProdOptions UnsortedSegmentMaxOptions
            UnsortedSegmentMinOptions UnsortedSegmentSumOptions ATan2Options SignOptions BitcastOptions
            BitwiseXorOptions RightShiftOptions
        """,
        "BuiltinOptions2": """
            StablehloConcatenateOptions StablehloBroadcastInDimOptions StablehloSliceOptions
            StablehloConvolutionOptions StablehloCustomCallOptions StablehloReduceOptions
            StablehloScatterOptions StablehloCompareOptions StablehloDynamicSliceOptions StablehloPadOptions
            StablehloIotaOptions StablehloDotGeneralOptions StablehloReduceWindowOptions StablehloSortOptions
            StablehloWhileOptions StablehloGatherOptions StablehloTransposeOptions DilateOptions
            StablehloRngBitGeneratorOptions ReduceWindowOptions StableHLOCompositeOptions
            StablehloShiftLeftOptions StablehloCaseOptions
        """,
    }.items()
}

#: Fields of each table. A member of an options union that is not listed here has no fields.
TABLES: dict[str, str] = {
    "CustomQuantization": "custom:[B",
    "BlockwiseQuantization": "scales:i zero_points:i block_size:i",
    "MultiAxisQuantization": "scales:i zero_points:i block_size:i quantized_dimensions:[i",
    "QuantizationParameters": (
        "min:[f max:[f scale:[f zero_point:[q details:<QuantizationDetails> quantized_dimension:i"
    ),
    "Int32Vector": "values:[i",
    "Uint16Vector": "values:[H",
    "Uint8Vector": "values:[B",
    "DimensionMetadata": "format:b dense_size:i array_segments:<SparseIndexVector> array_indices:<SparseIndexVector>",
    "SparsityParameters": "traversal_order:[i block_map:[i dim_metadata:[{DimensionMetadata}",
    "VariantSubType": "shape:[i type:b has_rank:?",
    "Tensor": (
        "shape:[i type:b buffer:I name:s quantization:{QuantizationParameters} is_variable:? "
        "sparsity:{SparsityParameters} shape_signature:[i has_rank:? variant_tensors:[{VariantSubType} "
        "external_buffer:I"
    ),
    "StablehloGatherOptions": (
        "offset_dims:[q collapsed_slice_dims:[q start_index_map:[q index_vector_dim:q slice_sizes:[q "
        "indices_are_sorted:?"
    ),
    "StablehloTransposeOptions": "permutation:[q",
    "StablehloDotGeneralOptions": (
        "lhs_batching_dimensions:[q rhs_batching_dimensions:[q lhs_contracting_dimensions:[q "
        "rhs_contracting_dimensions:[q precision_config:[I"
    ),
    "StablehloReduceWindowOptions": (
        "window_dimensions:[q window_strides:[q base_dilations:[q window_dilations:[q padding:[q body_subgraph_index:i"
    ),
    "StablehloWhileOptions": "cond_subgraph_index:i body_subgraph_index:i",
    "StablehloSortOptions": "dimension:q is_stable:? comparator_subgraph_index:i",
    "StablehloConcatenateOptions": "dimension:q",
    "StablehloBroadcastInDimOptions": "broadcast_dimensions:[q",
    "StablehloCompareOptions": "comparison_direction:I compare_type:I",
    "StablehloDynamicSliceOptions": "slice_sizes:[q",
    "StablehloPadOptions": "edge_padding_low:[q edge_padding_high:[q interior_padding:[q",
    "StablehloIotaOptions": "iota_dimension:q",
    "StablehloCustomCallOptions": (
        "call_target_name:s has_side_effect:? backend_config:s api_version:i called_computations:[i "
        "custom_attributes:[B"
    ),
    "StablehloReduceOptions": "dimensions:[q body_subgraph_index:i",
    "StablehloSliceOptions": "start_indices:[q limit_indices:[q strides:[q",
    "StablehloConvolutionOptions": (
        "window_strides:[q padding:[q lhs_dilation:[q rhs_dilation:[q window_reversal:[? input_batch_dimension:q "
        "input_feature_dimension:q input_spatial_dimensions:[q kernel_input_feature_dimension:q "
        "kernel_output_feature_dimension:q kernel_spatial_dimensions:[q output_batch_dimension:q "
        "output_feature_dimension:q output_spatial_dimensions:[q feature_group_count:q batch_group_count:q "
        "precision_config:[I"
    ),
    "StablehloScatterOptions": (
        "indices_are_sorted:? update_window_dims:[q inserted_window_dims:[q scatter_dims_to_operand_dims:[q "
        "index_vector_dim:q unique_indices:? update_computation_subgraph_index:i"
    ),
    "StablehloCaseOptions": "branch_subgraph_indices:[i",
    "StablehloRngBitGeneratorOptions": "algorithm:b",
    "Conv2DOptions": (
        "padding:b stride_w:i stride_h:i fused_activation_function:b dilation_w_factor:i=1 dilation_h_factor:i=1 "
        "quantized_bias_type:b"
    ),
    "Conv3DOptions": (
        "padding:b stride_d:i stride_w:i stride_h:i fused_activation_function:b dilation_d_factor:i=1 "
        "dilation_w_factor:i=1 dilation_h_factor:i=1"
    ),
    "Pool2DOptions": "padding:b stride_w:i stride_h:i filter_width:i filter_height:i fused_activation_function:b",
    "DepthwiseConv2DOptions": (
        "padding:b stride_w:i stride_h:i depth_multiplier:i fused_activation_function:b dilation_w_factor:i=1 "
        "dilation_h_factor:i=1"
    ),
    "ConcatEmbeddingsOptions": "num_channels:i num_columns_per_channel:[i embedding_dim_per_channel:[i",
    "LSHProjectionOptions": "type:b",
    "SVDFOptions": "rank:i fused_activation_function:b asymmetric_quantize_inputs:?",
    "RNNOptions": "fused_activation_function:b asymmetric_quantize_inputs:?",
    "SequenceRNNOptions": "time_major:? fused_activation_function:b asymmetric_quantize_inputs:?",
    "BidirectionalSequenceRNNOptions": (
        "time_major:? fused_activation_function:b merge_outputs:? asymmetric_quantize_inputs:?"
    ),
    "FullyConnectedOptions": (
        "fused_activation_function:b weights_format:b keep_num_dims:? asymmetric_quantize_inputs:? "
        "quantized_bias_type:b"
    ),
    "SoftmaxOptions": "beta:f",
    "ConcatenationOptions": "axis:i fused_activation_function:b",
    "AddOptions": "fused_activation_function:b pot_scale_int16:?=1",
    "MulOptions": "fused_activation_function:b",
    "L2NormOptions": "fused_activation_function:b",
    "LocalResponseNormalizationOptions": "radius:i bias:f alpha:f beta:f",
    "LSTMOptions": "fused_activation_function:b cell_clip:f proj_clip:f kernel_type:b asymmetric_quantize_inputs:?",
    "UnidirectionalSequenceLSTMOptions": (
        "fused_activation_function:b cell_clip:f proj_clip:f time_major:? asymmetric_quantize_inputs:? "
        "diagonal_recurrent_tensors:?"
    ),
    "BidirectionalSequenceLSTMOptions": (
        "fused_activation_function:b cell_clip:f proj_clip:f merge_outputs:? time_major:?=1 "
        "asymmetric_quantize_inputs:?"
    ),
    "ResizeBilinearOptions": "-new_height:i -new_width:i align_corners:? half_pixel_centers:?",
    "ResizeNearestNeighborOptions": "align_corners:? half_pixel_centers:?",
    "CallOptions": "subgraph:I",
    "ReshapeOptions": "new_shape:[i",
    "SkipGramOptions": "ngram_size:i max_skip_size:i include_all_ngrams:?",
    "SpaceToDepthOptions": "block_size:i",
    "DepthToSpaceOptions": "block_size:i",
    "SubOptions": "fused_activation_function:b pot_scale_int16:?=1",
    "DivOptions": "fused_activation_function:b",
    "EmbeddingLookupSparseOptions": "combiner:b",
    "GatherOptions": "axis:i batch_dims:i",
    "ReducerOptions": "keep_dims:?",
    "SqueezeOptions": "squeeze_dims:[i",
    "SplitOptions": "num_splits:i",
    "SplitVOptions": "num_splits:i",
    "StridedSliceOptions": "begin_mask:i end_mask:i ellipsis_mask:i new_axis_mask:i shrink_axis_mask:i offset:?",
    "CastOptions": "in_data_type:b out_data_type:b",
    "ArgMaxOptions": "output_type:b",
    "ArgMinOptions": "output_type:b",
    "TransposeConvOptions": "padding:b stride_w:i stride_h:i fused_activation_function:b quantized_bias_type:b",
    "SparseToDenseOptions": "validate_indices:?",
    "ShapeOptions": "out_type:b",
    "FakeQuantOptions": "min:f max:f num_bits:i narrow_range:?",
    "PackOptions": "values_count:i axis:i",
    "OneHotOptions": "axis:i",
    "UnpackOptions": "num:i axis:i",
    "LeakyReluOptions": "alpha:f",
    "MirrorPadOptions": "mode:b",
    "UniqueOptions": "idx_out_type:b=2",
    "ReverseSequenceOptions": "seq_dim:i batch_dim:i",
    "IfOptions": "then_subgraph_index:i else_subgraph_index:i",
    "CallOnceOptions": "init_subgraph_index:i",
    "WhileOptions": "cond_subgraph_index:i body_subgraph_index:i",
    "BatchMatMulOptions": "adj_x:? adj_y:? asymmetric_quantize_inputs:?",
    "CumsumOptions": "exclusive:? reverse:?",
    "HashtableOptions": "table_id:i key_dtype:b value_dtype:b",
    "VarHandleOptions": "container:s shared_name:s",
    "RandomOptions": "seed:q seed2:q",
    "BucketizeOptions": "boundaries:[f",
    "GeluOptions": "approximate:?",
    "ReduceWindowOptions": "reduce_function:i",
    "OperatorCode": "deprecated_builtin_code:b custom_code:s version:i=1 builtin_code:i",
    "StableHLOCompositeOptions": (
        "name:s decomposition_subgraph_index:i composite_attributes:[B composite_attributes_format:b version:i"
    ),
    "Operator": (
        "opcode_index:I inputs:[i outputs:[i builtin_options:<BuiltinOptions> custom_options:[B "
        "custom_options_format:b mutating_variable_inputs:[? intermediates:[i large_custom_options_offset:Q "
        "large_custom_options_size:Q builtin_options_2:<BuiltinOptions2> debug_metadata_index:i=-1"
    ),
    "SubGraph": "tensors:[{Tensor} inputs:[i outputs:[i operators:[{Operator} name:s debug_metadata_index:i=-1",
    "Buffer": "data:[B offset:Q size:Q",
    "ExternalBufferGroup": "name:s",
    "ExternalBuffer": "id:I group:I offset:Q length:Q packing:s",
    "Metadata": "name:s buffer:I",
    "TensorMap": "name:s tensor_index:I",
    "SignatureDef": "inputs:[{TensorMap} outputs:[{TensorMap} signature_key:s -deprecated_tag:s subgraph_index:I",
    "Model": (
        "version:I operator_codes:[{OperatorCode} subgraphs:[{SubGraph} description:s buffers:[{Buffer} "
        "metadata_buffer:[i metadata:[{Metadata} signature_defs:[{SignatureDef} "
        "external_buffer_groups:[{ExternalBufferGroup} external_buffers:[{ExternalBuffer}"
    ),
}
