// A fake. See README.md.
#pragma once
#define FAKE_PARAMS(name) \
  struct name {           \
    int fields[2];        \
  }
FAKE_PARAMS(TfLiteConvParams);
FAKE_PARAMS(TfLiteDepthwiseConvParams);
FAKE_PARAMS(TfLiteFullyConnectedParams);
FAKE_PARAMS(TfLitePoolParams);
FAKE_PARAMS(TfLiteAddParams);
FAKE_PARAMS(TfLiteMulParams);
FAKE_PARAMS(TfLiteSoftmaxParams);
FAKE_PARAMS(TfLiteReshapeParams);
FAKE_PARAMS(TfLiteStridedSliceParams);
FAKE_PARAMS(TfLiteConcatenationParams);
FAKE_PARAMS(TfLiteSVDFParams);
#undef FAKE_PARAMS
