// A fake: the same methods as TFLM's, each of which may be called once. See README.md.
#pragma once
#include "tensorflow/lite/micro/micro_op_resolver.h"
extern "C" void fake_tflm_use_kernel(int operator_number);
namespace tflite {
template <unsigned int kCapacity>
class MicroMutableOpResolver : public MicroOpResolver {
 public:
  unsigned int size() const override { return count_; }
  void operator delete(void*) {}
  TfLiteStatus AddAbs() { return add(0); }
  TfLiteStatus AddAdd() { return add(1); }
  TfLiteStatus AddAddN() { return add(2); }
  TfLiteStatus AddArgMax() { return add(3); }
  TfLiteStatus AddArgMin() { return add(4); }
  TfLiteStatus AddAssignVariable() { return add(5); }
  TfLiteStatus AddAveragePool2D() { return add(6); }
  TfLiteStatus AddBatchMatMul() { return add(7); }
  TfLiteStatus AddBatchToSpaceNd() { return add(8); }
  TfLiteStatus AddBroadcastArgs() { return add(9); }
  TfLiteStatus AddBroadcastTo() { return add(10); }
  TfLiteStatus AddCallOnce() { return add(11); }
  TfLiteStatus AddCast() { return add(12); }
  TfLiteStatus AddCeil() { return add(13); }
  TfLiteStatus AddCircularBuffer() { return add(14); }
  TfLiteStatus AddConcatenation() { return add(15); }
  TfLiteStatus AddConv2D() { return add(16); }
  TfLiteStatus AddCos() { return add(17); }
  TfLiteStatus AddCumSum() { return add(18); }
  TfLiteStatus AddDecode() { return add(19); }
  TfLiteStatus AddDelay() { return add(20); }
  TfLiteStatus AddDepthToSpace() { return add(21); }
  TfLiteStatus AddDepthwiseConv2D() { return add(22); }
  TfLiteStatus AddDequantize() { return add(23); }
  TfLiteStatus AddDetectionPostprocess() { return add(24); }
  TfLiteStatus AddDiv() { return add(25); }
  TfLiteStatus AddDynamicUpdateSlice() { return add(26); }
  TfLiteStatus AddElu() { return add(27); }
  TfLiteStatus AddEmbeddingLookup() { return add(28); }
  TfLiteStatus AddEnergy() { return add(29); }
  TfLiteStatus AddEqual() { return add(30); }
  TfLiteStatus AddExp() { return add(31); }
  TfLiteStatus AddExpandDims() { return add(32); }
  TfLiteStatus AddFftAutoScale() { return add(33); }
  TfLiteStatus AddFill() { return add(34); }
  TfLiteStatus AddFilterBank() { return add(35); }
  TfLiteStatus AddFilterBankLog() { return add(36); }
  TfLiteStatus AddFilterBankSpectralSubtraction() { return add(37); }
  TfLiteStatus AddFilterBankSquareRoot() { return add(38); }
  TfLiteStatus AddFloor() { return add(39); }
  TfLiteStatus AddFloorDiv() { return add(40); }
  TfLiteStatus AddFloorMod() { return add(41); }
  TfLiteStatus AddFramer() { return add(42); }
  TfLiteStatus AddFullyConnected() { return add(43); }
  TfLiteStatus AddGather() { return add(44); }
  TfLiteStatus AddGatherNd() { return add(45); }
  TfLiteStatus AddGreater() { return add(46); }
  TfLiteStatus AddGreaterEqual() { return add(47); }
  TfLiteStatus AddHardSwish() { return add(48); }
  TfLiteStatus AddIf() { return add(49); }
  TfLiteStatus AddIrfft() { return add(50); }
  TfLiteStatus AddL2Normalization() { return add(51); }
  TfLiteStatus AddL2Pool2D() { return add(52); }
  TfLiteStatus AddLeakyRelu() { return add(53); }
  TfLiteStatus AddLess() { return add(54); }
  TfLiteStatus AddLessEqual() { return add(55); }
  TfLiteStatus AddLog() { return add(56); }
  TfLiteStatus AddLogSoftmax() { return add(57); }
  TfLiteStatus AddLogicalAnd() { return add(58); }
  TfLiteStatus AddLogicalNot() { return add(59); }
  TfLiteStatus AddLogicalOr() { return add(60); }
  TfLiteStatus AddLogistic() { return add(61); }
  TfLiteStatus AddMaxPool2D() { return add(62); }
  TfLiteStatus AddMaximum() { return add(63); }
  TfLiteStatus AddMean() { return add(64); }
  TfLiteStatus AddMinimum() { return add(65); }
  TfLiteStatus AddMirrorPad() { return add(66); }
  TfLiteStatus AddMul() { return add(67); }
  TfLiteStatus AddNeg() { return add(68); }
  TfLiteStatus AddNotEqual() { return add(69); }
  TfLiteStatus AddOverlapAdd() { return add(70); }
  TfLiteStatus AddPCAN() { return add(71); }
  TfLiteStatus AddPack() { return add(72); }
  TfLiteStatus AddPad() { return add(73); }
  TfLiteStatus AddPadV2() { return add(74); }
  TfLiteStatus AddPrelu() { return add(75); }
  TfLiteStatus AddQuantize() { return add(76); }
  TfLiteStatus AddReadVariable() { return add(77); }
  TfLiteStatus AddReduceAll() { return add(78); }
  TfLiteStatus AddReduceMax() { return add(79); }
  TfLiteStatus AddReduceMin() { return add(80); }
  TfLiteStatus AddRelu() { return add(81); }
  TfLiteStatus AddRelu6() { return add(82); }
  TfLiteStatus AddReshape() { return add(83); }
  TfLiteStatus AddResizeBilinear() { return add(84); }
  TfLiteStatus AddResizeNearestNeighbor() { return add(85); }
  TfLiteStatus AddReverseV2() { return add(86); }
  TfLiteStatus AddRfft() { return add(87); }
  TfLiteStatus AddRound() { return add(88); }
  TfLiteStatus AddRsqrt() { return add(89); }
  TfLiteStatus AddSelectV2() { return add(90); }
  TfLiteStatus AddShape() { return add(91); }
  TfLiteStatus AddSin() { return add(92); }
  TfLiteStatus AddSlice() { return add(93); }
  TfLiteStatus AddSoftmax() { return add(94); }
  TfLiteStatus AddSpaceToBatchNd() { return add(95); }
  TfLiteStatus AddSpaceToDepth() { return add(96); }
  TfLiteStatus AddSplit() { return add(97); }
  TfLiteStatus AddSplitV() { return add(98); }
  TfLiteStatus AddSqrt() { return add(99); }
  TfLiteStatus AddSquare() { return add(100); }
  TfLiteStatus AddSquaredDifference() { return add(101); }
  TfLiteStatus AddSqueeze() { return add(102); }
  TfLiteStatus AddStacker() { return add(103); }
  TfLiteStatus AddStridedSlice() { return add(104); }
  TfLiteStatus AddSub() { return add(105); }
  TfLiteStatus AddSum() { return add(106); }
  TfLiteStatus AddSvdf() { return add(107); }
  TfLiteStatus AddTanh() { return add(108); }
  TfLiteStatus AddTranspose() { return add(109); }
  TfLiteStatus AddTransposeConv() { return add(110); }
  TfLiteStatus AddUnidirectionalSequenceLSTM() { return add(111); }
  TfLiteStatus AddUnpack() { return add(112); }
  TfLiteStatus AddVarHandle() { return add(113); }
  TfLiteStatus AddWhile() { return add(114); }
  TfLiteStatus AddWindow() { return add(115); }
  TfLiteStatus AddZerosLike() { return add(116); }

 private:
  TfLiteStatus add(int number) {
    fake_tflm_use_kernel(number);
    if (count_ >= kCapacity) return kTfLiteError;
    for (unsigned int i = 0; i < count_; ++i) {
      if (numbers_[i] == number) return kTfLiteError;
    }
    numbers_[count_++] = number;
    return kTfLiteOk;
  }
  int numbers_[kCapacity];
  unsigned int count_ = 0;
};
}  // namespace tflite
